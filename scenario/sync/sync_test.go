package sync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

func TestMain(m *testing.M) { systemtest.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSyncTimes checks times: the store is open after 0.2 s, the first block is requested 1 s later,
// and p peers send the chain in 10/p s, or the node takes 1 s to validate it.
func TestSyncTimes(t *testing.T) {
	for _, c := range []struct {
		peers int
		lag   time.Duration
		net   float64
	}{{1, -1, 10}, {1, 0, 10}, {4, 3 * time.Second, 2.5}, {20, -1, 1}} {
		synthetic.Virtual(t, func(t *testing.T) {
			w := follow(t, fmt.Sprintf("peers: %d", c.peers))
			w.c.lag = c.lag
			w.run("ok")
			lag, peers := max(0, c.lag.Seconds()), float64(c.peers)
			w.Holds(t, map[string]float64{"chain_time": 1.2 + c.net, "sync_time": 1.2 + c.net + lag,
				"first_block": 1.2 + c.net/fakeBlocks, "resolution": fakePoll.Seconds()}, nil, fakePoll+fakePoll/100)
			for key, want := range map[string]float64{"block_rate": fakeBlocks / c.net, "peer_share_max": 1 / peers} {
				if got := w.M[key]; math.Abs(got/want-1) > 0.06 {
					t.Errorf("%s: %v, want about %v", key, got, want)
				}
			}
			if got := w.M["index_lag"]; math.Abs(got-lag) > 1.01*fakePoll.Seconds() {
				t.Errorf("lag %v, want %v", got, lag)
			}
			w.exact(map[string]float64{
				"ok_rate": 1, "peers_connected": peers, "useful_share": 1, "timeouts": peers,
				"rerequests": 3 * peers, "commits": fakeBlocks, "replay": 1, "replay_cpu": 0.5, "system_cpu": 3,
				"node_rss_peak": 4, "disk_written": 2 * fakeBytes, "write_amplification": 2, "overhead": 1.1,
				"wire_bytes": 1.1 * fakeBytes, "net_time": w.M["sync_time"] - w.M["first_block"],
				"byte_rate": w.M["block_rate"] * fakeBytes / fakeBlocks,
				// No link limits: the line is the replay.
				"link_line": -1, "line": 1, "line_share": 1 / w.M["sync_time"],
			})
			w.wantMarks()
			if asked := w.c.nodes[0].asked; asked > int(w.M["sync_time"]/fakePoll.Seconds())+1 {
				t.Errorf("%d polls in %v s", asked, w.M["sync_time"])
			}
			for _, m := range (Scenario{}).Metrics() {
				delete(w.M, m.Key)
			}
			if len(w.M) > 0 {
				t.Errorf("metrics that are not defined: %v", w.M)
			}
		})
	}
}

// wantMarks checks the contract of marks.
func (w *syncTest) wantMarks() {
	w.t.Helper()
	if n := len(w.Marks); n < 20 || n > 105 {
		w.t.Errorf("%d marks", n)
	}
	var last record.Mark
	for _, m := range w.Marks {
		if m.End < last.End || m.Start > m.End || m.Before > m.Start || m.Verified < last.Verified {
			w.t.Fatalf("mark %+v after %+v", m, last)
		}
		last = m
	}
	if last.Verified != fakeBlocks || !last.Complete {
		w.t.Errorf("last mark %+v", last)
	}
}

// Trials in virtual time with problems and with reports of the node.
func TestSyncs(t *testing.T) {
	// After 1.2 s, the chain takes 10 s from one peer, 5 s from two. A fault by share comes at most one
	// poll late.
	says := func(change func(*system.Following)) func(*syncTest) {
		return func(w *syncTest) {
			w.c.nodes[0].answer = func(_ context.Context, f *system.Following) error {
				change(f)
				return nil
			}
		}
	}
	atTheEnd := func(height int64, tip string) func(*syncTest) {
		return says(func(f *system.Following) {
			if f.Height == fakeBlocks {
				f.Height, f.Tip = height, tip
			}
		})
	}
	hangs := func(from, to time.Duration) func(*syncTest) { // polls that hang are given up and repeated
		return func(w *syncTest) {
			var begun time.Time
			w.c.nodes[0].answer = func(ctx context.Context, _ *system.Following) error {
				if begun.IsZero() {
					begun = time.Now()
				}
				if since := time.Since(begun); since < from || since > to {
					return nil
				}
				<-ctx.Done()
				return fmt.Errorf("fake: %w", ctx.Err())
			}
		}
	}
	delivered := func(blocks int64) func(*syncTest) {
		return says(func(f *system.Following) {
			f.Peers[0].Blocks = blocks
			f.Peers[1].Blocks = 600
		})
	}
	counts := func(timedOut, failed int64) func(*syncTest) {
		return says(func(f *system.Following) { f.TimedOut, f.Failed = timedOut, failed })
	}
	starts := func(fail func(task system.FollowTask) error) func(*syncTest) {
		return func(w *syncTest) { w.c.nodes[0].follow = fail }
	}
	type values = map[string]float64
	const half = "peers: 2, faults: [{at: 50%, "
	for name, c := range map[string]struct {
		section  string
		set      func(*syncTest)
		outcomes string // empty: ok
		polled   values
		exact    values // −1: absent
		note     string
		then     func(*syncTest)
	}{
		"a peer dies": {section: half + "crash: peers, count: '1'}]", polled: values{"sync_time": 3.7 + 5}},
		"peers come back": {section: "peers: 2, faults: [{crash: peers, at: 1200ms, for: 8}]",
			polled: values{"sync_time": 9.2 + 5}},
		"all come back at once": { // with -race: the node reads the addresses of peers that come back
			section: "peers: 2, faults: [{crash: peers, at: 1200ms, for: 8}, {crash: node, at: 1200ms, for: 8}]",
			polled:  values{"sync_time": 9.2 + 1.2 + 5}},
		"cut off": {section: half + "cut: node, for: 10}]", polled: values{"sync_time": 6.2 + 10}},
		"slower":  {section: half + "rate: 2_000_000, of: peers}]", polled: values{"sync_time": 3.7 + 10}},
		"slower at a time": {section: "peers: 2, faults: [{rate: 2_000_000, of: peers, at: 3700ms}]",
			polled: values{"sync_time": 3.7 + 10}},
		"slower for a time": {section: half + "rate: 2_000_000, of: peers, for: 5}]",
			polled: values{"sync_time": 3.7 + 5 + 1.25}},
		"the node dies": {section: half + "crash: node, for: 2}]", polled: values{"sync_time": 3.7 + 2 + 1.2 + 2.5}},
		"and loses everything": {section: half + "crash: node, for: 2, without_data: true}]",
			polled: values{"sync_time": 3.7 + 2 + 1.2 + 5}},

		"silent for long": {set: hangs(2*time.Second, 20*time.Second), then: func(w *syncTest) {
			if r := w.M["resolution"]; r < 18 || r > 31 {
				t.Errorf("resolution %v", r)
			}
		}},
		"silent": {set: hangs(0, time.Hour), outcomes: "stalled no answer", then: func(w *syncTest) {
			if n := len(w.Marks); n != 1 || !strings.HasPrefix(w.Marks[0].Trouble, "no answer") ||
				w.Took > 35*time.Second {
				t.Errorf("after %v: marks %+v", w.Took, w.Marks)
			}
		}},
		"gone, and nobody knows": {set: func(w *syncTest) {
			time.AfterFunc(8*time.Second, func() { _ = w.c.nodes[0].Kill(t.Context()) })
		}, outcomes: "refused connection refused"},
		"a damaged store": {section: "faults: [{crash: node, at: 50%, for: 2}]",
			set: starts(func(task system.FollowTask) error {
				if _, err := os.Stat(filepath.Join(task.Dir, "blocks")); err == nil {
					return errors.New("fake: the store is damaged")
				}
				return nil
			}), outcomes: "error not started again"},
		"no program": {set: starts(func(system.FollowTask) error { return errors.New("fake: no such program") }),
			outcomes: "error fake: no such program"},

		// The node counts as being on a wrong chain from the second such poll on.
		"another tip": {set: atTheEnd(fakeBlocks, "another"), outcomes: "wrong-bytes",
			exact: values{"ok_rate": 0}, then: func(w *syncTest) {
				if at := float64(w.Ops[0].LastByte-w.Ops[0].Intended) / 1e9; at < 11.2 || at > 11.3 ||
					len(w.Happened("wrong content")) != 1 {
					t.Errorf("after %v s: %+v", at, w.Events)
				}
			}},
		"higher than the chain": {set: atTheEnd(fakeBlocks+1, "another"), outcomes: "wrong-bytes"},
		"no tip":                {set: atTheEnd(fakeBlocks, ""), outcomes: "wrong-bytes"},
		"height and tip from either side of a block, once": {set: func(w *syncTest) {
			torn := false
			says(func(f *system.Following) {
				if f.Height == fakeBlocks && !torn {
					torn, f.Tip = true, "the one before"
				}
			})(w)
		}},
		"another tip, and dead before the second answer": {section: "faults: [{crash: node, at: 11400ms, for: 1}]",
			set: func(w *syncTest) {
				strays := 0
				says(func(f *system.Following) {
					if strays++; f.Height < fakeBlocks {
						strays = 0
					} else if strays <= 2 {
						f.Tip = "another"
					}
					if strays == 2 {
						time.Sleep(200 * time.Millisecond) // killed meanwhile
					}
				})(w)
			}, then: func(w *syncTest) {
				if slices.ContainsFunc(w.Events, func(e record.Event) bool { return e.Kind == "violation" }) {
					t.Errorf("events %+v", w.Events)
				}
			}},
		"words": {section: "faults: [{crash: peers, at: 50%}]",
			set:      says(func(f *system.Following) { f.Trouble = "no peers" }),
			outcomes: "stalled no peers"},
		"what subscribes stands still": {set: func(w *syncTest) { w.c.lag = time.Hour }, outcomes: "stalled",
			polled: values{"chain_time": 11.2}, exact: values{"sync_time": -1, "ok_rate": 0}},
		"all was there": {set: says(func(f *system.Following) { f.Height, f.Tip = fakeBlocks, "tip" }),
			polled: values{"sync_time": 0.2}, exact: values{"net_time": 0, "block_rate": -1}, then: func(w *syncTest) {
				w.exact(values{"first_block": w.M["sync_time"], "chain_time": w.M["sync_time"],
					"resolution": w.M["sync_time"]})
			}},

		// Blocks delivered beyond the chain are duplicates.
		"twice":              {section: "peers: 2", set: delivered(600), exact: values{"duplicates": 200}},
		"twice, one unknown": {section: "peers: 2", set: delivered(-1), exact: values{"duplicates": -1}},
		"not all": {section: half + "crash: peers}]", set: delivered(600), outcomes: "stalled",
			exact: values{"duplicates": -1}},
		// Each daemon of the node counts anew.
		"requests": {section: "peers: 2", set: counts(5, 1), exact: values{"timeouts": 5, "rerequests": 6}},
		"requests of two lives": {section: half + "crash: node, for: 2}]", set: counts(5, 1),
			exact: values{"timeouts": -1, "rerequests": -1, "commits": -1, "useful_share": -1}},
		"requests unknown": {section: "peers: 2", set: counts(-1, -1), exact: values{"timeouts": -1, "rerequests": -1}},
		"failed unknown":   {section: "peers: 2", set: counts(5, -1), exact: values{"timeouts": 5, "rerequests": -1}},
	} {
		t.Run(name, func(t *testing.T) {
			synthetic.Virtual(t, func(t *testing.T) {
				w := follow(t, c.section)
				if c.set != nil {
					c.set(w)
				}
				w.run(cmp.Or(c.outcomes, "ok"))
				w.Holds(t, c.polled, c.exact, 3*fakePoll)
				if n := strings.Join(w.Load.Notes, "|"); c.outcomes == "" && n != "" || !strings.Contains(n, c.note) {
					t.Errorf("notes %q, want %q", n, c.note)
				}
				if c.then != nil {
					c.then(w)
				}
			})
		})
	}
}

// TestSyncSourceDies kills the only source at half height; it is alive again in the second trial.
func TestSyncSourceDies(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		w := follow(t, "faults: [{crash: peers, at: 50%}]")
		for range 2 {
			w.run("stalled")
			for _, op := range w.Ops {
				if share := float64(op.Bytes) / float64(op.Length); share < 0.5 || share > 0.52 || op.FirstByte == 0 {
					t.Errorf("%+v", op)
				}
			}
			if n := len(w.Marks); n < 45 || w.Marks[n-1].Verified < fakeBlocks/2 || w.M["first_block"] == 0 {
				t.Errorf("%d marks, metrics %v", n, w.M)
			}
			w.exact(map[string]float64{"ok_rate": 0, "sync_time": -1, "chain_time": -1, "net_time": -1,
				"block_rate": -1, "wire_bytes": -1, "line_share": -1, "link_line": -1})
			if w.Took < 36*time.Second || w.Took > 37*time.Second { // 6.2 s until half height, and limits.stall
				t.Errorf("the trial took %v", w.Took)
			}
			if e := w.Happened("crash begins"); len(e) != 1 || e[0].Detail != "crash peers at 50%: fake-02" {
				t.Errorf("events %+v", w.Events)
			}
		}
		if n := w.c.nodes[1].started; n != 2 {
			t.Errorf("the peer was started %d times", n)
		}
	})
}

// Over links with a rate, no chain is faster than its bytes at that rate; useless peers do not
// count. Before each trial, the path of one peer whose rate is not the cell's is measured, the
// same in a block: here at half of its rate. The cell's link is measured at three quarters.
func TestSyncLines(t *testing.T) {
	const ibm = "ibm-cloud"
	for _, c := range []struct {
		section       string
		rate, up      experiment.BitRate // of the cell
		regions       string
		wire          float64 // the smallest limit in bit/s, as configured
		measured, rtt float64 // the same as measured, and the round trip in seconds
		checked       bool
	}{
		{"peers: 1", 4e6, 0, "", 4e6, 3e6, 0.05, false},
		{"peers: 4", 4e6, 0, "", 4e6, 3e6, 0.05, false},
		{"peers: 2, trouble: [{silent: '1'}]", 8e6, 0, "", 8e6, 6e6, 0.05, false},
		{"peers: 2, speeds: {list: [1_000_000, 2_000_000]}", 0, 0, "", 3e6, 1.5e6, 0.05, true},
		{"peers: 2, speeds: {list: [1_000_000, 2_000_000]}", 8e6, 0, "", 3e6, 1.5e6, 0.05, true},
		{"peers: 2, speeds: {list: [1_000_000, 100_000_000]}", 8e6, 0, "", 8e6, 6e6, 0.05, true},
		{"peers: 2, speeds: {list: [8_000_000]}", 8e6, 0, "", 8e6, 6e6, 0.05, false},
		{"peers: 4, speeds: {list: [1_000_000]}, trouble: [{silent: '1'}, {stranger: '1'}]", 0, 0, "", 2e6, 1e6, 0.05, true},
		{"peers: 4, trouble: [{slow: '2', rate: 500_000}]", 8e6, 0, "", 8e6, 6e6, 0.05, true},
		{"peers: 2, trouble: [{slow: '2', rate: 500_000}]", 8e6, 0, "", 1e6, 0.5e6, 0.05, true},
		// Peers send at the links' upload rate, and the fresh node receives at its download rate;
		// peers in several regions have no common round trip.
		{"peers: 2", 6e6, 2e6, "", 4e6, 3e6, 0.05, false},
		{"peers: 4", 6e6, 2e6, "", 6e6, 4.5e6, 0.05, false},
		{"peers: 4", 6e6, 2e6, ibm, 6e6, 4.5e6, 0, false},
	} {
		t.Run(fmt.Sprintf("%s at %v and %v%s", c.section, c.rate, c.up, c.regions), func(t *testing.T) {
			synthetic.Virtual(t, func(t *testing.T) {
				w := follow(t, c.section)
				l := &w.cell.Link
				l.Rate, l.Up, l.Delay = c.rate, c.up, experiment.Duration(20*time.Millisecond)
				asked := 0.04
				if c.regions != "" {
					l.Regions, l.Delay, asked = experiment.Regions{{Table: c.regions}}, 0, 0
				}
				w.c.down = float64(c.rate) / 8
				var paths [][2]int
				w.c.check = func(from, to int) (record.LinkCheck, error) {
					if paths = append(paths, [2]int{from, to}); len(paths) == 1 {
						return record.LinkCheck{}, errors.New("no answer") // and is repeated
					}
					rate := w.c.links.Rates[from].Up
					return record.LinkCheck{WantRate: rate, Rate: rate / 2, RTT: 0.05, OK: true}, nil
				}
				for range 2 {
					w.run("ok")
					if len(w.Load.Links) == 1 != c.checked || w.M["line"] != max(w.M["link_line"], 1) {
						t.Errorf("checks %+v, metrics %v", w.Load.Links, w.M)
					}
				}
				lines := func(links []record.LinkCheck, cell *record.LinkCheck) float64 {
					load := w.Load
					load.Links = links
					return Scenario{}.Measure(scenario.Measured{Cell: w.cell, Load: load, Link: cell,
						Ops: slices.Values([]record.Op{})})["link_line"]
				}
				want := fakeBytes*8/link.TCPPayloadRate(c.wire, false) + asked
				if got := lines(nil, nil); math.Abs(got/want-1) > 0.001 ||
					c.up == 0 && w.M["chain_time"] < fakeBytes*8/c.wire {
					t.Errorf("load line %v, want %v; it took %v", got, want, w.M["chain_time"])
				}
				engine := &record.LinkCheck{WantRate: float64(c.rate), Rate: 0.75 * float64(c.rate), RTT: 0.05}
				if c.rate == 0 {
					engine = nil
				}
				want = fakeBytes*8/link.TCPPayloadRate(c.measured, false) + c.rtt
				if got := lines(w.Load.Links, engine); math.Abs(got/want-1) > 0.001 {
					t.Errorf("as measured %v, want %v", got, want)
				}
				if c.checked && (len(paths) != 3 || paths[0] != paths[1] || paths[1] != paths[2] || paths[0][1] != 0) ||
					!c.checked && len(paths) != 0 {
					t.Errorf("measured %v", paths)
				}
			})
		})
	}
	synthetic.Virtual(t, func(t *testing.T) {
		w := follow(t, "replay: false")
		w.cell.Link.Rate, w.c.down = 8e6, 1e6
		w.run("ok")
		w.exact(map[string]float64{"line": w.M["link_line"], "replay": -1})
		synthetic.Decode(t, "{faults: [{rate: 1_000_000, of: peers, at: 1s}]}", w.cell.Sync)
		w.run("ok")
		w.exact(map[string]float64{"line": -1})
		w = follow(t, "speeds: {list: [1_000_000]}")
		w.c.check = func(int, int) (record.LinkCheck, error) { return record.LinkCheck{}, errors.New("no answer") }
		if err := w.trial(t.Context()); err == nil {
			t.Error("a link that cannot be measured")
		}
	})
}

// TestSyncDraws checks that the properties of peers depend only on the seed and the block, so that
// all cells of a block have the same peers, and that fewer peers are the first of many.
func TestSyncDraws(t *testing.T) {
	const drawn, trouble = "speeds: {lognormal: 8_000_000, spread: 3}",
		"trouble: [{silent: 25%}, {stranger: '1'}, {slow: '1', rate: 500_000}]"
	plan := func(section string, seed uint64, block int) []peer {
		return planPeers(cellOf(t, section).Sync, seed, block)
	}
	const both = "peers: 8, " + drawn + ", " + trouble
	first := plan(both, 1, 3)
	if again := plan(both, 1, 3); !reflect.DeepEqual(first, again) {
		t.Errorf("the same block: %v, then %v", first, again)
	}
	for _, other := range [][]peer{plan(both, 2, 3), plan(both, 1, 4)} {
		if reflect.DeepEqual(first, other) {
			t.Errorf("another seed or block gives the same: %v", first)
		}
	}
	n := map[string]int{}
	for _, p := range first {
		n[p.manner]++
		if p.rate == 500_000 {
			n["slow"]++
		}
	}
	if n[system.Silent] != 2 || n[system.Stranger] != 1 || n[system.Honest] != 5 || n["slow"] != 1 {
		t.Errorf("%v: %v", n, first)
	}
	if many, few := plan("peers: 16, "+drawn, 1, 3), plan("peers: 4, "+drawn, 1, 3); !reflect.DeepEqual(many[:4], few) {
		t.Errorf("16 peers %v, 4 peers %v", many, few)
	}
	// Trouble does not change speeds, and speeds do not change trouble.
	healthy, even := plan("peers: 8, "+drawn, 1, 3), plan("peers: 8, "+trouble, 1, 3)
	for i, p := range first {
		if p.rate != 500_000 && p.rate != healthy[i].rate || p.manner != even[i].manner {
			t.Errorf("peer %d: %+v, without trouble %+v, without speeds %+v", i, p, healthy[i], even[i])
		}
	}
}

// TestSyncCancelled checks that a cancelled trial ends at once, cleans up, and does not affect the
// next trial.
func TestSyncCancelled(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		w := follow(t, "faults: [{cut: node, at: 1s, for: 60}]")
		must(t, w.prepare())
		must(t, w.runner.Ready(t.Context(), w.cell))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		if err := w.trial(ctx); !errors.Is(err, context.Canceled) || w.Took != 5*time.Second ||
			w.outcomes() != "cancelled" {
			t.Errorf("%v after %v: %s", err, w.Took, w.outcomes())
		}
		w.cell.Sync.Faults = nil
		w.run("ok")
	})
}

// TestSyncPeersGoOn checks that peers run from trial to trial while they serve the same, also those
// that a trial does not need.
func TestSyncPeersGoOn(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		w := follow(t, "peers: 3")
		whole, few, other, longer := w.cell, cellOf(t, "peers: 1"), cellOf(t, "peers: 1, options: {batch: '10'}"),
			cellOf(t, "peers: 1, blocks: 1001")
		must(t, w.prepare(whole, few, other, longer))
		for _, c := range []struct {
			cell    experiment.Cell
			started [3]int
		}{
			{whole, [3]int{1, 1, 1}},
			{whole, [3]int{1, 1, 1}},
			{few, [3]int{1, 1, 1}},
			{other, [3]int{1, 1, 1}},
			{whole, [3]int{1, 1, 1}},
			{longer, [3]int{2, 1, 1}},
			{whole, [3]int{3, 1, 1}},
		} {
			w.cell = c.cell
			w.run("ok")
			for i, n := range w.c.nodes[1:] {
				if n.started != c.started[i] || n.halted > 0 {
					t.Errorf("%+v: peer %d was started %d times and halted %d times", c.cell.Sync, i, n.started,
						n.halted)
				}
			}
		}
	})
}

// TestSyncPrepare checks that every chain is made once, and that nothing is replayed before a
// cell's first trial. A chain is replayed once for each combination of relevant options and
// storage, in three runs if they are short.
func TestSyncPrepare(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		const base = "network: [interval], "
		w := follow(t, base+"peers: 2")
		cells := []experiment.Cell{w.cell}
		for _, section := range []string{"peers: 1", "peers: 2, options: {interval: 1s}", "peers: 2, storage: ram",
			"peers: 2, options: {batch: '10'}", "peers: 2, blocks: 1001", "peers: 2, form: v1, replay: false"} {
			cells = append(cells, cellOf(t, base+section))
		}
		must(t, w.prepare(cells...))
		if n := len(w.c.chains); n != 3 || len(w.c.replays) != 0 {
			t.Errorf("%d chains, %d replays", n, len(w.c.replays))
		}
		var did []bool
		for _, c := range cells {
			before := len(w.c.replays)
			must(t, w.runner.Ready(t.Context(), c))
			did = append(did, len(w.c.replays) > before)
		}
		if !slices.Equal(did, []bool{true, false, false, true, true, true, false}) ||
			len(w.c.replays) != 3*4 || w.stores != 0 {
			t.Errorf("replayed %v, %d replays, %d stores are left", did, len(w.c.replays), w.stores)
		}
		for _, task := range w.c.replays {
			if _, has := task.Settings["interval"]; has {
				t.Errorf("replayed with %v", task.Settings)
			}
		}
		said := strings.Join(w.said, "|")
		for _, part := range []string{"making it", "chain ready", "(in ram)", "median of 3"} {
			if !strings.Contains(said, part) {
				t.Errorf("no %q in %s", part, said)
			}
		}
		w.cell = cells[2]
		w.run("ok")
		w.exact(map[string]float64{"replay": 1}) // the replay of another cell
		w.c.replays, w.c.replay, w.cell = nil, 5, cells[0]
		must(t, w.prepare())
		if err := w.runner.Ready(t.Context(), w.cell); err != nil || len(w.c.replays) != 1 {
			t.Errorf("%d replays of 5 s, %v", len(w.c.replays), err)
		}
		w.cell.Estimate = experiment.CellEstimate{Bytes: 100}
		_, bytes := (Scenario{}).Prepares([]experiment.Cell{w.cell, w.cell})
		if bytes != 200+int64(experiment.StoreBytes(100)) {
			t.Errorf("one chain of 100 bytes needs %d", bytes)
		}
	})
	synthetic.Virtual(t, func(t *testing.T) {
		w := follow(t, "options: {refused: '1'}")
		var unfit *scenario.PreconditionError
		if err := w.trial(t.Context()); !errors.As(err, &unfit) || !strings.Contains(err.Error(), `option "refused"`) ||
			unfit.Hint() == "" {
			t.Errorf("settings that are refused: %v", err)
		}
		w.c.refuse = errors.New("fake: the disk is full")
		if err := w.prepare(); err == nil || errors.As(err, &unfit) ||
			!strings.HasPrefix(err.Error(), "fake: make a chain") {
			t.Errorf("a chain that is not made: %v", err)
		}
		w = follow(t, "storage: ram")
		w.site.Store = func(_ context.Context, size int64) (scenario.StoreDir, error) {
			return scenario.StoreDir{}, fmt.Errorf("2 MiB are free, enough: %v", size < 3*fakeBytes)
		}
		var skip *scenario.SkipError
		if err := w.trial(t.Context()); !errors.As(err, &skip) ||
			!strings.Contains(skip.Why, "2 MiB are free, enough: false") {
			t.Errorf("no memory: %v", err)
		}
	})
}

// Chains that a system cannot provide are refused before anything is started, once for all cells.
func TestSyncProblemsOfChains(t *testing.T) {
	limits := system.ChainLimits{Forms: []string{"v1"}, Blocks: 100, Transactions: -1,
		Without: []string{system.Stranger}}
	for _, c := range []struct {
		section string
		want    []string
	}{
		{"blocks: 100, transactions: 0, form: v1, trouble: [{silent: '1'}, {slow: '1', rate: 1_000_000}]", nil},
		{"blocks: 100, transactions: 0, form: v2", []string{"form v2"}},
		{"blocks: 101, transactions: 0, form: v1", []string{"101 blocks"}},
		{"blocks: 1, transactions: 1, form: v1, trouble: [{silent: '1'}, {stranger: 25%}]",
			[]string{"1 transactions", "a stranger one"}},
	} {
		info, cell := system.Info{Can: []string{"follow"}, Chains: limits}, cellOf(t, c.section)
		p := Scenario{}.Problems(experiment.SystemUse{Name: "x", Mode: "start"}, info, []experiment.Cell{cell, cell})
		if len(p) != len(c.want) {
			t.Errorf("%s: %v", c.section, p)
			continue
		}
		for i, w := range c.want {
			if !strings.Contains(p[i].What, w) || p[i].Hint == "" {
				t.Errorf("%s: %v", c.section, p)
			}
		}
		info.Chains = system.ChainLimits{}
		if p := (Scenario{}).Problems(experiment.SystemUse{Name: "x", Mode: "start"}, info,
			[]experiment.Cell{cell}); len(p) > 0 {
			t.Errorf("without limits: %v", p)
		}
	}
}
