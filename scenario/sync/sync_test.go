package sync

import (
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
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// TestSyncTimes: the store is open after 0.2 s, the first block is requested 1 s
// later, and p peers send the chain in 10/p s, or the node takes 1 s to validate it.
func TestSyncTimes(t *testing.T) {
	for _, c := range []struct {
		peers int
		lag   time.Duration
		net   float64
	}{{1, -1, 10}, {1, 0, 10}, {4, 3 * time.Second, 2.5}, {20, -1, 1}} {
		scenariotest.Virtual(t, func(t *testing.T) {
			w := newSyncTest(t, c.peers, func(f *fakeChains, cell *experiment.Cell) { f.lag = c.lag })
			w.run()
			w.want(allOK)
			lag := max(0, c.lag.Seconds())
			w.about("chain_time", 1.2+c.net)
			w.about("sync_time", 1.2+c.net+lag)
			w.about("first_block", 1.2+c.net/fakeBlocks)
			if got := w.m["net_time"]; math.Abs(got-(w.m["sync_time"]-w.m["first_block"])) > 1e-9 {
				t.Errorf("net time %v", w.m)
			}
			if got, want := w.m["block_rate"], fakeBlocks/c.net; math.Abs(got/want-1) > 0.06 {
				t.Errorf("block rate %v, want %v", got, want)
			}
			if got, want := w.m["byte_rate"], w.m["block_rate"]*fakeBytes/fakeBlocks; math.Abs(got/want-1) > 1e-9 {
				t.Errorf("byte rate %v, want %v", got, want)
			}
			if got := w.m["index_lag"]; math.Abs(got-lag) > 1.01*fakePoll.Seconds() {
				t.Errorf("lag %v, want %v", got, lag)
			}
			if got := w.m["resolution"]; got < fakePoll.Seconds() || got > 1.01*fakePoll.Seconds() {
				t.Errorf("resolution %v", got)
			}
			if got := w.m["overhead"]; math.Abs(got-1.1) > 0.001 || w.m["wire_bytes"] != 1.1*fakeBytes {
				t.Errorf("on the wire %v, overhead %v", w.m["wire_bytes"], got)
			}
			for key, want := range map[string]float64{
				"ok_rate": 1, "peers_connected": float64(c.peers), "peers_useful": float64(c.peers), "useful_share": 1,
				"timeouts": float64(c.peers), "rerequests": 3 * float64(c.peers),
				"commits": fakeBlocks, "replay": 1, "replay_cpu": 0.5, "system_cpu": 3, "node_rss_peak": 4,
				"disk_written": 2 * fakeBytes, "write_amplification": 2,
			} {
				if w.m[key] != want {
					t.Errorf("%s: %v, want %v", key, w.m[key], want)
				}
			}
			if got := w.m["peer_share_max"]; math.Abs(got*float64(c.peers)-1) > 0.03 {
				t.Errorf("the largest share of %d peers is %v", c.peers, got)
			}
			// No link is limited: the line is the replay.
			if _, has := w.m["link_line"]; has || w.m["line"] != 1 || w.m["line_share"] != 1/w.m["sync_time"] {
				t.Errorf("lines %v", w.m)
			}
			w.wantMarks()
			if asked := w.c.nodes[0].asked; asked > int(w.m["sync_time"]/fakePoll.Seconds())+1 {
				t.Errorf("%d polls in %v s", asked, w.m["sync_time"])
			}
			for _, m := range (Scenario{}).Metrics() {
				delete(w.m, m.Key)
			}
			if len(w.m) > 0 {
				t.Errorf("metrics that are not defined: %v", w.m)
			}
		})
	}
}

// wantMarks holds marks to their contract.
func (w *syncTest) wantMarks() {
	w.t.Helper()
	if n := len(w.marks); n < 20 || n > 105 {
		w.t.Errorf("%d marks", n)
	}
	var last record.Mark
	for _, m := range w.marks {
		if m.End < last.End || m.Start > m.End || m.Before > m.Start || m.Verified < last.Verified ||
			m.Received < last.Received {
			w.t.Fatalf("mark %+v after %+v", m, last)
		}
		last = m
	}
	if last.Verified != fakeBlocks || !last.Complete || last.Received != int64(1.1*fakeBytes) {
		w.t.Errorf("last mark %+v", last)
	}
}

// Peers send at the links' rate up, the fresh node receives at its rate down; peers in several
// regions have no common round trip.
func TestAsymmetricSyncLine(t *testing.T) {
	regions := experiment.Regions{{Table: "ibm-cloud"}}
	for _, c := range []struct {
		peers     int
		regions   experiment.Regions
		wire, rtt float64
	}{{2, nil, 4e6, 0.04}, {4, nil, 6e6, 0.04}, {4, regions, 6e6, 0}} {
		scenariotest.Virtual(t, func(t *testing.T) {
			w := newSyncTest(t, c.peers, func(f *fakeChains, cell *experiment.Cell) {
				cell.Link.Up, cell.Link.Down, cell.Link.Regions = 2e6, 6e6, c.regions
				if c.regions == nil {
					cell.Link.Delay = experiment.Duration(20 * time.Millisecond)
				}
			})
			w.run()
			want := fakeBytes*8/link.TCPPayloadRate(c.wire, false) + c.rtt
			if got := w.m["link_line"]; math.Abs(got-want) > 1e-9 {
				t.Errorf("%d peers in %v: load line %v, want %v", c.peers, c.regions, got, want)
			}
		})
	}
}

// TestSyncLine: over links of a rate no chain is faster than its bytes at that
// rate; peers that have nothing to give do not count.
func TestSyncLine(t *testing.T) {
	for _, c := range []struct {
		peers           int
		rate            experiment.BitRate
		speeds, trouble string
		wire            float64 // the least of what limits, bit/s
	}{
		{1, 4e6, "link", "none", 4e6},
		{4, 4e6, "link", "none", 4e6},
		{2, 0, "list 1Mbit 2Mbit", "none", 3e6},
		{4, 0, "list 1Mbit", "1 silent; 1 stranger", 2e6},
		{4, 8e6, "link", "2 at 500kbit", 8e6},
		{2, 8e6, "link", "2 at 500kbit", 1e6},
	} {
		scenariotest.Virtual(t, func(t *testing.T) {
			w := newSyncTest(t, c.peers, func(f *fakeChains, cell *experiment.Cell) {
				cell.Link.Rate, cell.Link.Delay = c.rate, experiment.Duration(20*time.Millisecond)
				cell.Sync.Speeds, cell.Sync.Trouble = speedsOf(c.speeds), troubleOf(c.trouble)
				f.down = float64(c.rate) / 8
			})
			w.run()
			w.want(allOK)
			line, bits := w.m["link_line"], fakeBytes*8/c.wire
			if line < bits || line > 1.06*bits+0.04 {
				t.Errorf("%+v: load line %v, want a little more than %v", c, line, bits)
			}
			if w.m["line"] != max(line, 1) || w.m["chain_time"] < bits {
				t.Errorf("%+v: %v", c, w.m)
			}
			// What was measured through the links corrects the line.
			half := record.LinkCheck{WantRate: 1e6, Rate: 0.5e6, RTT: 0.04}
			load := w.load
			load.Links = []record.LinkCheck{half}
			slow := Scenario{}.Measure(scenario.Measured{Cell: w.cell, Load: load, Link: &half})
			if got := slow["link_line"]; math.Abs((got-0.04)/(line-0.04)-2) > 1e-6 {
				t.Errorf("at half the rate %v, at the whole %v", got, line)
			}
		})
	}
	scenariotest.Virtual(t, func(t *testing.T) {
		w := newSyncTest(t, 1, func(f *fakeChains, cell *experiment.Cell) {
			cell.Link.Rate, f.down = 8e6, 1e6
			cell.Sync.Replay = false
		})
		w.run()
		if w.m["line"] != w.m["link_line"] || w.m["line"] == 0 {
			t.Errorf("without a replay %v", w.m)
		}
		if _, has := w.m["replay"]; has {
			t.Error("a replay that nobody asked for")
		}
		w.cell.Sync.Faults = faultsOf("rate 1Mbit of peers at 1s")
		w.run()
		if _, has := w.m["line"]; has {
			t.Error("a load line with faults")
		}
	})
}

// TestSyncDraws: what peers are like depends on the seed and the block alone, so
// that all cells of a block see the same ones; the first of many are those of few.
func TestSyncDraws(t *testing.T) {
	plan := func(peers int, speeds, trouble string, seed uint64, block int) []peerPlan {
		s := &experiment.Sync{Peers: peers, Speeds: speedsOf(speeds), Trouble: troubleOf(trouble)}
		return planPeers(s, seed, block)
	}
	const drawn, trouble = "lognormal 8Mbit x3", "25% silent; 1 stranger; 1 at 500kbit"
	first := plan(8, drawn, trouble, 1, 3)
	if again := plan(8, drawn, trouble, 1, 3); !reflect.DeepEqual(first, again) {
		t.Errorf("the same block: %v, then %v", first, again)
	}
	for _, other := range [][]peerPlan{plan(8, drawn, trouble, 2, 3), plan(8, drawn, trouble, 1, 4)} {
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
	many, few := plan(16, drawn, "none", 1, 3), plan(4, drawn, "none", 1, 3)
	if !reflect.DeepEqual(many[:4], few) {
		t.Errorf("16 peers %v, 4 peers %v", many, few)
	}
	// Trouble changes no speeds, speeds no trouble.
	for i, p := range plan(8, drawn, "none", 1, 3) {
		if first[i].rate != 500_000 && p.rate != first[i].rate {
			t.Errorf("peer %d sends at %v without trouble, and at %v with it", i, p.rate, first[i].rate)
		}
	}
	for i, p := range plan(8, "link", trouble, 1, 3) {
		if p.manner != first[i].manner {
			t.Errorf("peer %d is %q where speeds are not drawn, and else %q", i, p.manner, first[i].manner)
		}
	}
}

// TestSyncSourceDies: of the only source at half height; with others it goes on.
func TestSyncSourceDies(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		w := newSyncTest(t, 1, withFaults("crash peers at 50%"))
		for range 2 { // the second trial finds the peer alive
			w.run()
			w.want("sync stalled ;serve stalled ;")
			for _, op := range w.ops {
				if share := float64(op.Bytes) / float64(op.Length); share < 0.5 || share > 0.52 || op.FirstByte == 0 {
					t.Errorf("%+v", op)
				}
			}
			if n := len(w.marks); n < 45 || w.marks[n-1].Verified < fakeBlocks/2 || w.m["ok_rate"] != 0 ||
				w.m["first_block"] == 0 {
				t.Errorf("%d marks, metrics %v", n, w.m)
			}
			for _, key := range []string{"sync_time", "chain_time", "net_time", "block_rate", "wire_bytes",
				"line_share", "link_line"} {
				if v, has := w.m[key]; has {
					t.Errorf("%s: %v", key, v)
				}
			}
			if w.took < 36*time.Second || w.took > 37*time.Second { // 6.2 s until the half, limits.stall
				t.Errorf("the trial took %v", w.took)
			}
			if e := w.happened("crash begins"); len(e) != 1 || e[0].Detail != "crash peers at 50%: fake-02" {
				t.Errorf("events %+v", w.events)
			}
		}
		if n := w.c.nodes[1].started; n != 2 {
			t.Errorf("the peer was started %d times", n)
		}
	})
	for faults, want := range map[string]float64{
		"crash 1 peer at 50%":                   6.2 - 2.5 + 5, // half of it from two in 2.5 s, half from one in 5 s
		"crash peers at 1200ms for 8s":          9.2 + 5,
		"cut node at 50% for 10s":               6.2 + 10,
		"rate 2Mbit of peers at 50%":            3.7 + 10,
		"rate 2Mbit of peers at 3700ms":         3.7 + 10,
		"rate 2Mbit of peers at 50% for 5s":     3.7 + 5 + 1.25,
		"crash node at 50% for 2s":              3.7 + 2 + 1.2 + 2.5,
		"crash node at 50% for 2s without data": 3.7 + 2 + 1.2 + 5,
	} {
		scenariotest.Virtual(t, func(t *testing.T) {
			w := newSyncTest(t, 2, withFaults(faults))
			w.run()
			w.want(allOK)
			// A fault by share comes a poll late at most.
			if got := w.m["sync_time"]; got < want-1e-6 || got > want+3*fakePoll.Seconds() {
				t.Errorf("%s: %v s, want %v", faults, got, want)
			}
			if n := len(w.load.Notes); n != 0 {
				t.Errorf("%s: notes %q", faults, w.load.Notes)
			}
			if l := w.c.links; len(l.Apart)+len(l.Rates) > 0 {
				t.Errorf("%s: links %+v are left", faults, l)
			}
			if got := w.m["commits"]; got < fakeBlocks {
				t.Errorf("%s: %v commits", faults, got)
			}
		})
	}
}

// TestSyncSilent: a question that hangs is given up, and asked again.
func TestSyncSilent(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		w := newSyncTest(t, 1, nil)
		var begun time.Time
		w.c.nodes[0].hang = func() bool {
			if begun.IsZero() {
				begun = time.Now()
			}
			return time.Since(begun) > 2*time.Second && time.Since(begun) < 20*time.Second
		}
		w.run()
		w.want(allOK)
		if r := w.m["resolution"]; r < 18 || r > 31 {
			t.Errorf("resolution %v", r)
		}
	})
	scenariotest.Virtual(t, func(t *testing.T) {
		w := newSyncTest(t, 1, nil)
		w.c.nodes[0].hang = func() bool { return true }
		w.run()
		w.want("sync stalled no answer;serve stalled no answer;")
		if w.took > 35*time.Second {
			t.Errorf("after %v: %v", w.took, w.m)
		}
		if n := len(w.marks); n != 1 || !strings.HasPrefix(w.marks[0].Trouble, "no answer") {
			t.Errorf("marks %+v", w.marks)
		}
	})
	scenariotest.Virtual(t, func(t *testing.T) { // its process is gone, and nobody knows
		w := newSyncTest(t, 1, nil)
		time.AfterFunc(8*time.Second, func() { _ = w.c.nodes[0].Kill(t.Context()) })
		w.run()
		w.want("sync refused connection refused;serve refused connection refused;")
	})
}

// TestSyncLies: a node is not taken at its word.
func TestSyncLies(t *testing.T) {
	for name, lie := range map[string]func(*system.Following){
		"another tip":           func(f *system.Following) { f.Tip = "another" },
		"higher than the chain": func(f *system.Following) { f.Height, f.Tip = fakeBlocks+1, "another" },
		"no tip":                func(f *system.Following) { f.Tip = "" },
	} {
		scenariotest.Virtual(t, func(t *testing.T) {
			w := newSyncTest(t, 1, nil)
			w.c.nodes[0].answer = func(f *system.Following) error {
				if f.Height == fakeBlocks {
					lie(f)
				}
				return nil
			}
			w.run()
			w.want("sync wrong-bytes ;serve wrong-bytes ;")
			if w.m["ok_rate"] != 0 || len(w.happened("wrong chain")) != 1 {
				t.Errorf("%s: %v, %+v", name, w.m, w.events)
			}
			// the third poll that says so
			if got := float64(w.ops[0].LastByte-w.ops[0].Intended) / 1e9; got < 11.3 || got > 11.4 {
				t.Errorf("%s: told after %v s", name, got)
			}
		})
	}
	scenariotest.Virtual(t, func(t *testing.T) { // height and tip from either side of a block, once
		w := newSyncTest(t, 1, nil)
		torn := false
		w.c.nodes[0].answer = func(f *system.Following) error {
			if f.Height == fakeBlocks && !torn {
				torn, f.Tip = true, "the one before"
			}
			return nil
		}
		w.run()
		w.want(allOK)
	})
	scenariotest.Virtual(t, func(t *testing.T) { // trouble is its word
		w := newSyncTest(t, 1, withFaults("crash peers at 50%"))
		w.c.nodes[0].answer = func(f *system.Following) error {
			f.Trouble = "no peers"
			return nil
		}
		w.run()
		w.want("sync stalled no peers;serve stalled no peers;")
	})
	scenariotest.Virtual(t, func(t *testing.T) { // the chain is there, and what subscribes stands still
		w := newSyncTest(t, 1, func(f *fakeChains, _ *experiment.Cell) { f.lag = time.Hour })
		w.run()
		w.want("sync ok ;serve stalled ;")
		w.about("chain_time", 11.2)
		if _, has := w.m["sync_time"]; has || w.m["ok_rate"] != 0 {
			t.Errorf("%v", w.m)
		}
	})
}

// TestSyncAtOnce: all was there at the first poll.
func TestSyncAtOnce(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		w := newSyncTest(t, 1, nil)
		w.c.nodes[0].answer = func(f *system.Following) error { f.Height, f.Tip = fakeBlocks, "tip"; return nil }
		w.run()
		w.want(allOK)
		at := w.m["sync_time"]
		if at != w.m["first_block"] || at != w.m["chain_time"] || w.m["net_time"] != 0 || w.m["resolution"] != at ||
			at < 0.2 || at > 0.25 {
			t.Errorf("%v", w.m)
		}
		if _, has := w.m["block_rate"]; has {
			t.Errorf("a rate of blocks that were there: %v", w.m)
		}
	})
}

// TestSyncDamaged: a node that does not start on its store again, or at all, is an error.
func TestSyncDamaged(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		w := newSyncTest(t, 1, withFaults("crash node at 50% for 2s"))
		w.c.nodes[0].follow = func(task system.FollowTask) error {
			if b, err := os.ReadFile(filepath.Join(task.Dir, "blocks")); err == nil {
				return fmt.Errorf("fake: the store %s is damaged: %s", filepath.Join(task.Dir, "blocks"), b)
			}
			return nil
		}
		w.run()
		w.want("sync error not started again;serve error not started again;")
	})
	scenariotest.Virtual(t, func(t *testing.T) {
		w := newSyncTest(t, 1, nil)
		w.c.nodes[0].follow = func(system.FollowTask) error { return errors.New("fake: no such program") }
		w.run()
		w.want("sync error fake: no such program;serve error fake: no such program;")
	})
}

// TestSyncCancelled: it ends at once, cleans up, and the next trial is none the
// worse.
func TestSyncCancelled(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		w := newSyncTest(t, 1, withFaults("cut node at 1s for 1m"))
		must(t, w.prepare())
		must(t, w.runner.Ready(t.Context(), w.cell))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		if err := w.trial(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("the trial ended with %v", err)
		}
		if w.took != 5*time.Second || len(w.c.links.Apart) > 0 {
			t.Errorf("after %v: links %+v", w.took, w.c.links)
		}
		w.want("sync cancelled ;serve cancelled ;")
		w.cell.Sync.Faults = faultsOf("none")
		w.run()
		w.want(allOK)
	})
}

// TestSyncPeersGoOn: from trial to trial, while they serve the same; those that are
// not needed are halted when they serve another chain, and not for a setting.
func TestSyncPeersGoOn(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		w := newSyncTest(t, 3, nil)
		few, other := w.cell, w.cell
		one := *w.cell.Sync
		one.Peers = 1
		few.Sync = &one
		vary := one
		vary.Options = map[string]string{"batch": "10"}
		other.Sync = &vary
		longer, long := w.cell, one
		long.Blocks++
		longer.Sync = &long
		must(t, w.prepare(w.cell, few, other, longer))
		whole := w.cell
		for _, c := range []struct {
			cell            experiment.Cell
			started, halted [3]int
		}{
			{whole, [3]int{1, 1, 1}, [3]int{}},
			{whole, [3]int{1, 1, 1}, [3]int{}},
			{few, [3]int{1, 1, 1}, [3]int{}},
			{other, [3]int{2, 1, 1}, [3]int{}},
			{whole, [3]int{3, 1, 1}, [3]int{}},
			{longer, [3]int{4, 1, 1}, [3]int{0, 1, 1}},
			{whole, [3]int{5, 2, 2}, [3]int{0, 1, 1}},
		} {
			w.cell = c.cell
			w.run()
			w.want(allOK)
			for i, n := range w.c.nodes[1:] {
				if n.started != c.started[i] || n.halted != c.halted[i] {
					t.Errorf("%+v: peer %d was started %d times and halted %d times", c.cell.Sync, i, n.started,
						n.halted)
				}
			}
		}
	})
	scenariotest.Virtual(t, func(t *testing.T) { // one that comes back elsewhere is never found
		w := newSyncTest(t, 1, withFaults("crash peers at 50% for 1s"))
		time.AfterFunc(6500*time.Millisecond+3*time.Second, func() { w.c.nodes[1].connect = "0" })
		w.run()
		w.want("sync stalled ;serve stalled ;")
		if n := strings.Join(w.load.Notes, "|"); !strings.Contains(n, "cannot find it") {
			t.Errorf("notes %q", n)
		}
	})
}

// TestSyncPrepare: every chain is made once, and nothing is replayed before a cell's
// first trial; each that is replayed with something that matters to it, or elsewhere,
// is so once in all sessions, in three runs where they are short.
func TestSyncPrepare(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		w := newSyncTest(t, 2, func(_ *fakeChains, cell *experiment.Cell) { cell.Sync.Network = []string{"interval"} })
		cells := []experiment.Cell{w.cell}
		add := func(set func(*experiment.Sync)) {
			s := *w.cell.Sync
			set(&s)
			c := w.cell
			c.Sync = &s
			cells = append(cells, c)
		}
		vary := func(name, value string) {
			add(func(s *experiment.Sync) { s.Options = map[string]string{name: value} })
		}
		add(func(s *experiment.Sync) { s.Peers = 1 })
		vary("interval", "1s")
		add(func(s *experiment.Sync) { s.Storage = "ram" })
		vary("batch", "10")
		add(func(s *experiment.Sync) { s.Blocks++ })
		add(func(s *experiment.Sync) { s.Form = "v1"; s.Replay = false })
		must(t, w.prepare(cells...))
		if n := len(w.c.chains); n != 3 || len(w.c.replays) != 0 {
			t.Errorf("%d chains, %d replays", n, len(w.c.replays))
		}
		ready := func() (did []bool) {
			t.Helper()
			for _, c := range cells {
				before := len(w.c.replays)
				if err := w.runner.Ready(t.Context(), c); err != nil {
					t.Error(err)
				}
				did = append(did, len(w.c.replays) > before)
			}
			return did
		}
		if did := ready(); !slices.Equal(did, []bool{true, false, false, true, true, true, false}) ||
			len(w.c.replays) != 3*4 || w.stores != 0 {
			t.Errorf("replayed %v, %d replays, %d stores are left", did, len(w.c.replays), w.stores)
		}
		for _, task := range w.c.replays {
			if _, has := task.Settings["interval"]; has {
				t.Errorf("replayed with %v", task.Settings)
			}
		}
		said := strings.Join(w.said, "|")
		for _, part := range []string{"making it", "chain made", "made again",
			"replaying 1000 blocks from a local file (in ram)", "median of 3"} {
			if !strings.Contains(said, part) {
				t.Errorf("no %q in %s", part, said)
			}
		}
		w.cell = cells[2]
		w.run()
		if w.m["replay"] != 1 {
			t.Errorf("a trial that another cell's replay is of: %v", w.m)
		}
		w.c.replays, w.c.replay, w.cell = nil, 5, cells[0]
		must(t, w.prepare())
		if err := w.runner.Ready(t.Context(), w.cell); err != nil || len(w.c.replays) != 1 {
			t.Errorf("%d replays of 5 s, %v", len(w.c.replays), err)
		}
		if _, bytes := (Scenario{}).Prepares([]experiment.Cell{{Sync: w.cell.Sync,
			Estimate: experiment.CellEstimate{Bytes: 100}}, {Sync: w.cell.Sync,
			Estimate: experiment.CellEstimate{Bytes: 100}}}); bytes != 200+int64(experiment.StoreBytes(100)) {
			t.Errorf("one chain of 100 bytes needs %d", bytes)
		}
	})
	scenariotest.Virtual(t, func(t *testing.T) {
		w := newSyncTest(t, 1, func(_ *fakeChains,
			cell *experiment.Cell) {
			cell.Sync.Options = map[string]string{"refused": "1"}
		})
		var unfit *scenario.UnfitError
		if err := w.trial(t.Context()); !errors.As(err, &unfit) || !strings.Contains(err.Error(), `option "refused"`) ||
			unfit.Hint() == "" {
			t.Errorf("settings that are refused: %v", err)
		}
		w.c.refuse = errors.New("fake: the disk is full")
		if err := w.prepare(); err == nil || errors.As(err, &unfit) ||
			!strings.HasPrefix(err.Error(), "fake: make a chain") {
			t.Errorf("a chain that is not made: %v", err)
		}
		w = newSyncTest(t, 1, nil)
		w.site.RAM = func(_ context.Context, size int64) (scenario.StoreDir, error) {
			if size < 3*fakeBytes {
				t.Errorf("a RAM disk of %d bytes for a store of %d", size, 3*fakeBytes)
			}
			return scenario.StoreDir{}, errors.New("2 MiB are free")
		}
		w.cell.Sync.Storage = "ram"
		var skip *scenario.SkipError
		if err := w.trial(t.Context()); !errors.As(err, &skip) || !strings.Contains(skip.Why, "2 MiB are free") {
			t.Errorf("no memory: %v", err)
		}
	})
}

// What a system cannot have is refused before anything is started, once for all cells.
func TestSyncProblemsOfChains(t *testing.T) {
	limits := system.ChainLimits{Forms: []string{"v1"}, Blocks: 100, Transactions: -1,
		Without: []string{system.Stranger}}
	cell := func(blocks, transactions int, form, trouble string) experiment.Cell {
		return experiment.Cell{Sync: &experiment.Sync{Peers: 1, Trouble: troubleOf(trouble), Storage: "disk",
			Blocks: blocks, Transactions: transactions, Form: form}}
	}
	for _, c := range []struct {
		cell experiment.Cell
		want []string
	}{
		{cell(100, 0, "v1", "1 silent; 1 at 1Mbit"), nil},
		{cell(100, 0, "v2", "none"), []string{"form v2"}},
		{cell(101, 0, "v1", "none"), []string{"101 blocks"}},
		{cell(1, 1, "v1", "1 silent; 25% stranger"), []string{"1 transactions", "a stranger one"}},
	} {
		info := system.Info{Can: []string{"follow"}, Chains: limits}
		p := Scenario{}.Problems(experiment.SystemUse{Name: "x", Mode: "start"}, info,
			[]experiment.Cell{c.cell, c.cell})
		if len(p) != len(c.want) {
			t.Errorf("%+v: %v", c.cell.Sync, p)
			continue
		}
		for i, w := range c.want {
			if !strings.Contains(p[i].What, w) || p[i].Hint == "" {
				t.Errorf("%+v: %v", c.cell.Sync, p)
			}
		}
		info.Chains = system.ChainLimits{}
		if p := (Scenario{}).Problems(experiment.SystemUse{Name: "x", Mode: "start"}, info,
			[]experiment.Cell{c.cell}); len(p) > 0 {
			t.Errorf("without limits: %v", p)
		}
	}
}
