package upload

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

// payer is a node that pays a coin for each byte that it keeps.
type payer struct {
	*mem.Node
	refuses func() error // may be nil
}

func coins(n int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(n), new(big.Int).Exp(big.NewInt(10), big.NewInt(system.Decimals), nil))
}

func (p payer) Calls() []system.Call {
	read := func(ctx context.Context) ([]system.Reading, error) {
		if p.refuses != nil {
			if err := p.refuses(); err != nil {
				return nil, err
			}
		}
		held, err := p.Stats(ctx)
		return []system.Reading{system.Money(system.ReadSpent, coins(held.Absolute)),
			system.Money(system.ReadUnspent, new(big.Int))}, err
	}
	return append(collect.Calls(p.Node), system.Call{Name: "money", Read: read})
}

// An account that once does not answer changes no amount; money spent before that is unknown.
func TestSpentOfASystemThatWasNotReady(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, system.Options{"a": "10s"}, uploadCell(30, 1000, func(u *experiment.Upload) {
			u.Poll = experiment.Duration(7 * time.Second) // never coincides with an acceptance
		}))
		asked := 0
		b.node = payer{b.mem, func() error {
			if asked++; asked == 1 {
				return errors.New("module is loading")
			}
			return nil
		}}
		if _, err := b.mem.Put(t.Context(), "budget", 500, strings.NewReader(strings.Repeat("x", 500))); err != nil {
			t.Fatal(err)
		}
		if got := b.must().metrics["spent"]; !synthetic.Near(got, 30_000) {
			t.Errorf("spent %v", got)
		}
	})
}

// Only polls that made all calls have a latency. The time of a call that timed out is a lower
// bound.
func TestPollLatency(t *testing.T) {
	call := func(name string, seconds float64, why string) record.PollCall {
		return record.PollCall{Name: name, End: time.Duration(seconds * float64(time.Second)), Error: why}
	}
	for _, c := range []struct {
		name  string
		polls [][]record.PollCall
		want  map[string]float64 // 0: none
	}{
		{"the worst hours count", [][]record.PollCall{
			{call("a", 1, "")}, {call("a", 1, "")}, {call("a", 600, "timeout: no answer within 10 min")},
			{call("a", 600, "timeout: no answer within 10 min")},
		}, map[string]float64{"poll_p50": 300.5, "poll_gaps": 2}},
		{"an expensive call that rests", [][]record.PollCall{
			{call("stats", 1, ""), call("list", 1, "")}, {call("stats", 0.005, "")}, {call("stats", 0.005, "")},
			{call("stats", 1, ""), call("list", 40, "")},
		}, map[string]float64{"poll_p50": 21.5}},
		{"refused at once is no latency", [][]record.PollCall{
			{call("a", 2, ""), call("b", 2, "")}, {call("a", 2, ""), call("b", 0, "connection refused: nobody there")},
		}, map[string]float64{"poll_p50": 4, "poll_gaps": 1}},
	} {
		var polls []record.Poll
		for i, calls := range c.polls {
			polls = append(polls, record.Poll{Seq: int64(i), Calls: calls})
		}
		in := newLedger().Recorded()
		in.Polls = slices.Values(polls)
		m := Collect{}.Measure(in)
		for key, want := range c.want {
			if got := m[key]; got != want {
				t.Errorf("%s: %s is %v, want %v", c.name, key, got, want)
			}
		}
	}
}

// Both bandwidths of a test cover the same time, in which it stored objects.
func TestBandwidthsHaveOneWindow(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		b := newUploadBench(t, system.Options{"a": "2s", "expansion": "3", "settle": "2h"},
			uploadCell(600, 1000, func(u *experiment.Upload) { u.Settle = experiment.Duration(time.Second) }))
		m := b.must().metrics
		if file, absolute := m["file_bandwidth"], m["absolute_bandwidth"]; !(file > 0) || absolute < 2.9*file ||
			absolute > 3.1*file {
			t.Errorf("absolute bytes are three times the file bytes, their bandwidths %v and %v", absolute, file)
		}
	})
}

// Months of trouble make only a few spans, one for each kind.
func TestTroubleIsOneSpanForEachKind(t *testing.T) {
	var polls []record.Poll
	for hour := range 5000 {
		at := time.Duration(hour) * time.Hour
		polls = append(polls, record.Poll{
			Start: at,
			Calls: []record.PollCall{{Name: "/wallet", Start: at,
				Error: fmt.Sprintf("timeout: no answer within %dms", hour)}},
			Readings: []record.Reading{{Name: "height", Bad: fmt.Sprintf("fell from %d to 3", hour)},
				{Name: "files", Value: 3}},
		})
	}
	all := readPolls(&scenario.Measured{Polls: slices.Values(polls)}).trouble
	if len(all) != 2 || *all[0] != (trouble{"call failed", "/wallet", "timeout", 5000, 0, 4999 * 3600,
		"timeout: no answer within 0ms"}) ||
		all[1].count != 5000 {
		t.Errorf("%+v", all)
	}
}

// A contract that ends and a payment that waits for its block change only where money is.
func TestWealth(t *testing.T) {
	poll := func(balance, outgoing, spent, ended int64) (p record.Poll) {
		for name, n := range map[string]int64{system.ReadBalance: balance, system.ReadOutgoing: outgoing,
			system.ReadSpent: spent, system.ReadEnded: ended} {
			p.Readings = append(p.Readings, record.Reading{Name: name, Value: float64(n), Exact: fmt.Sprint(n)})
		}
		return p
	}
	in := &scenario.Measured{Polls: slices.Values([]record.Poll{poll(500, 0, 300, 0), poll(539, 0, 200, 61),
		poll(539, 40, 240, 61)})}
	for i, at := range readPolls(in).wealth {
		if at.level.Int64() != 800 {
			t.Errorf("poll %d: %v of 800", i, at.level)
		}
	}
}
