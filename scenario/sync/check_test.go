package sync

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
)

// halved is a network on which every path has half of its rate.
type halved struct {
	*fakeChains
	fails int // the next so many measurements
	asked [][2]int
}

func (h *halved) Check(_ context.Context, from, to int) (record.LinkCheck, error) {
	h.asked = append(h.asked, [2]int{from, to})
	if h.fails > 0 {
		h.fails--
		return record.LinkCheck{}, errors.New("no answer")
	}
	rate := h.links.Rates[from].Up
	return record.LinkCheck{WantRate: rate, Rate: rate / 2, RTT: 0.05, OK: true}, nil
}

// TestSyncCheck: of peers whose rates are their own one path, the same in a block, is
// measured before each trial, and the load line is by what was measured.
func TestSyncCheck(t *testing.T) {
	const cells = 8e6 // the cell's rate, measured at three quarters
	engine := &record.LinkCheck{WantRate: cells, Rate: 0.75 * cells, RTT: 0.04}
	for _, c := range []struct {
		peers           int
		rate            experiment.BitRate
		speeds, trouble string
		check           *record.LinkCheck
		checked         bool
		wire, rtt       float64
	}{
		{2, cells, "link", "none", engine, false, 0.75 * cells, 0.04},
		{2, cells, "link", "1 silent", engine, false, 0.75 * cells, 0.04},
		{2, cells, "list 1Mbit 2Mbit", "none", engine, true, 1.5e6, 0.04},
		{2, cells, "link", "1 at 500kbit; 1 silent", engine, true, 0.25e6, 0.04},
		{2, 0, "list 1Mbit", "none", nil, true, 1e6, 0.05},
		{2, cells, "list 1Mbit 100Mbit", "none", engine, true, 0.75 * cells, 0.04},
		{2, cells, "list 8Mbit", "none", engine, false, 0.75 * cells, 0.04},
	} {
		scenariotest.Virtual(t, func(t *testing.T) {
			w := newSyncTest(t, c.peers, func(f *fakeChains, cell *experiment.Cell) {
				cell.Link.Rate, cell.Link.Delay = c.rate, experiment.Duration(20*time.Millisecond)
				cell.Sync.Speeds, cell.Sync.Trouble = speedsOf(c.speeds), troubleOf(c.trouble)
				cell.Sync.Replay = false
			})
			n := &halved{fakeChains: w.c, fails: 1}
			w.site.Network = n
			for range 2 {
				w.run()
				w.want(allOK)
				if got := len(w.load.Links); (got == 1) != c.checked {
					t.Errorf("%+v: %d checks are recorded", c, got)
				}
			}
			got := Scenario{}.Measure(scenario.Measured{Cell: w.cell, Load: w.load, Link: c.check})["link_line"]
			// 1448 of the 1514 bytes of a frame are payload.
			if want := fakeBytes*8/(c.wire*1448/1514) + c.rtt; math.Abs(got/want-1) > 0.01 {
				t.Errorf("%+v: load line %v, want %v", c, got, want)
			}
			want := 0
			if c.checked {
				want = 3 // the first failed
			}
			if len(n.asked) != want {
				t.Errorf("%+v: measured %v", c, n.asked)
			}
			for _, path := range n.asked {
				if path[1] != 0 || n.asked[0] != path || w.runner.nodes[path[0]] == nil {
					t.Errorf("%+v: measured %v", c, n.asked)
				}
			}
			w.number++ // another block
			w.run()
			if c.checked && len(n.asked) != want+1 || !c.checked && len(n.asked) > 0 {
				t.Errorf("%+v: in the next block measured %v", c, n.asked)
			}
		})
	}
	scenariotest.Virtual(t, func(t *testing.T) {
		w := newSyncTest(t, 1, func(_ *fakeChains, cell *experiment.Cell) { cell.Sync.Speeds = speedsOf("list 1Mbit") })
		w.site.Network = &halved{fakeChains: w.c, fails: 2}
		if err := w.trial(t.Context()); err == nil {
			t.Error("a link that cannot be measured")
		}
	})
}
