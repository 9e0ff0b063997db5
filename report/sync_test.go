package report

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// look at a page by eye: PLIMSOLL_PAGES names a directory for it.
func keepPage(t testing.TB, r *Report, name string) {
	t.Helper()
	if dir := os.Getenv("PLIMSOLL_PAGES"); dir != "" {
		must(t, os.WriteFile(filepath.Join(dir, name+".html"), page(t, r), 0o644))
		must(t, os.WriteFile(filepath.Join(dir, name+".txt"), []byte(text(t, r, 120)), 0o644))
	}
}

// covers reports whether an interval has the truth, and is narrow enough to say
// something.
func covers(lo, hi Num, truth float64) bool {
	return float64(lo) <= truth && truth <= float64(hi) && hi/lo < 1.2
}

func TestSyncFindsTheInjectedEffects(t *testing.T) {
	r := syncTruth{}.build(t)
	keepPage(t, r, "sync")
	if len(r.Tunings) != 1 {
		t.Fatalf("%d tunings", len(r.Tunings))
	}
	tu := &r.Tunings[0]
	// A main effect is the geometric mean over the levels of the others.
	for name, truth := range map[string]float64{
		"subscriber none":               truthNone / math.Sqrt(truthRAM),
		"storage ram":                   math.Sqrt(truthRAM),
		"timeouts short":                truthTimeouts,
		"storage ram × subscriber none": 1 / truthRAM,
	} {
		e := effectNamed(t, tu, name)
		if !e.Shown || !covers(e.Lo, e.Hi, truth) {
			t.Errorf("%s: %s, the truth is %.3g", name, e.words(), truth)
		}
	}
	for _, name := range []string{"storage ram × timeouts short", "subscriber none × timeouts short"} {
		if e := effectNamed(t, tu, name); e.Shown || !covers(e.Lo, e.Hi, 1) || !strings.HasPrefix(e.words(), "~ ") {
			t.Errorf("%s: %s, there is none", name, e.words())
		}
	}
	best := configuration(t, r, "subscriber none, timeouts short")
	with := configuration(t, r, "storage ram, subscriber none, timeouts short")
	if tu.Best != best.Cell && tu.Best != with.Cell {
		t.Errorf("best is %s", tu.Best)
	}
	if tu.Gain == nil || !tu.Gain.Shown || !covers(tu.Gain.Lo, tu.Gain.Hi, truthNone*truthTimeouts) {
		t.Errorf("gain %+v", tu.Gain)
	}
	// The RAM disk gains nothing there: the two cannot be told apart.
	if len(tu.Alike) != 1 || tu.Alike[0].Cell != best.Cell && tu.Alike[0].Cell != with.Cell {
		t.Errorf("as good as the best: %+v", tu.Alike)
	}
	product, shares := 1.0, 0.0
	for _, s := range tu.Steps {
		product *= float64(s.Value)
		shares += float64(s.Share)
	}
	if math.Abs(product/float64(tu.Gain.Value)-1) > 1e-6 || math.Abs(shares-1) > 1e-6 || tu.Steps[0].To.name() != "subscriber none" {
		t.Errorf("steps %+v multiply to %g of %g, their shares add up to %g", tu.Steps, product, tu.Gain.Value, shares)
	}
	if !strings.Contains(r.Verdict.Text, "−64 %") || r.Verdict.Tone != Good {
		t.Errorf("verdict: %+v", r.Verdict)
	}
	for _, rule := range []string{"best", "bought", "interactions", "as-good", "risks", "node-waits"} {
		if !r.finding(rule) {
			t.Errorf("no finding %q", rule)
		}
	}
	if r.finding("never-served") || r.finding("beyond-line") || r.finding("aliases") || r.finding("search") {
		t.Errorf("findings: %+v", r.Findings)
	}
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "interactions" })
	if words := strings.Join(r.Findings[i].Evidence, "\n"); !strings.Contains(words, "storage ram gains −4") || !strings.Contains(words, "gains nothing (~") || !strings.Contains(words, "once subscriber is none") {
		t.Errorf("interactions: %s", words)
	}
}

func TestSyncReadsEachTrial(t *testing.T) {
	r := syncTruth{}.build(t)
	d := configuration(t, r, "")
	if !d.Default || !d.cell.Baseline || d.Trials != 6 || d.Outcomes["ok"] != 6 || d.cell.Success.Of != 6 {
		t.Fatalf("default: %+v, success %+v", d, d.cell.Success)
	}
	if at := float64(d.StartUp); math.Abs(at-syncFirst/syncDefault) > 0.02 || math.Abs(float64(d.StartUp+d.Net+d.Index)-1) > 1e-9 {
		t.Errorf("shares %v %v %v", d.StartUp, d.Net, d.Index)
	}
	if d.Bound != boundWaits || d.NetLineShare <= d.cell.Metrics["line_share"].Median {
		t.Errorf("bound by %q, %v after the first block", d.Bound, d.NetLineShare)
	}
	// Blocks come at an even rate, and the link carries the chain and 6 %.
	want := d.metric("block_rate")
	if len(d.Rates) < stretches-1 {
		t.Fatalf("%d stretches", len(d.Rates))
	}
	for _, h := range d.Rates {
		if math.Abs(float64(h.Blocks)/want-1) > 0.05 || math.Abs(float64(h.Wire/h.Blocks)/(syncBytes*1.06/3000)-1) > 0.05 {
			t.Errorf("at height %d: %v blocks/s, %v B/s, want %v", h.Height, h.Blocks, h.Wire, want)
		}
	}
	if len(d.Peers) != 1 || d.Peers[0].Peers != 24 || d.Peers[0].Useful != 24 || math.Abs(float64(d.Peers[0].Share)-0.25) > 1e-9 {
		t.Errorf("peers: %+v", d.Peers)
	}
	if r.Run.Operations != 48 {
		t.Errorf("%d operations of 48 trials", r.Run.Operations)
	}
	s := d.cell.Ratios["sync_time"]
	if s.N != 0 {
		t.Errorf("the default is compared with itself: %+v", s)
	}
	if got := r.constantsTable(); len(got.Rows) != 2 || got.Rows[0][1].Text != "blocks per request" {
		t.Errorf("constants: %+v", got.Rows)
	}
	if r.environment("constants.ledger") != "" {
		t.Error("constants are told twice")
	}
}

// A trial that never came to serve is neither fast nor left out.
func TestSyncCountsNodesThatNeverServed(t *testing.T) {
	stall := func(when func(c *experiment.Cell, block int) bool) func(*experiment.Cell, int, *newcomer) {
		return func(c *experiment.Cell, block int, f *newcomer) {
			if when(c, block) {
				f.outcome, f.class, f.height, f.serve = record.Stalled, "stalled", 0.4, 30
			}
		}
	}
	r := syncTruth{node: stall(func(c *experiment.Cell, block int) bool {
		return is(c, "sync.vary.subscriber", "none") && is(c, "sync.vary.timeouts", "short") && is(c, "sync.storage", "disk") && block%3 == 0
	})}.build(t)
	keepPage(t, r, "sync-stalled")
	s := configuration(t, r, "subscriber none, timeouts short")
	if s.unfinished() != 2 || s.cell.Metrics["sync_time"].beyond != 2 || s.cell.Metrics["block_rate"].beyond != 2 {
		t.Errorf("%d unfinished, summary %+v", s.unfinished(), s.cell.Metrics["sync_time"])
	}
	if q, ok := s.cell.Ratios["sync_time"]; ok {
		t.Errorf("a ratio of those that came to serve alone: %+v", q)
	}
	tu := &r.Tunings[0]
	if tu.Best == s.Cell || tu.Unfinished != 2 {
		t.Errorf("best %s, %d unfinished", tu.Best, tu.Unfinished)
	}
	if !r.finding("never-served") || r.Verdict.Tone != Bad || !strings.Contains(r.Verdict.Text, "never came to serve") {
		t.Errorf("verdict %+v", r.Verdict)
	}
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "never-served" })
	if words := r.Findings[i].Evidence[0]; !strings.Contains(words, "2 of 6 trials") || !strings.Contains(words, "stalled ×2") || !strings.Contains(words, "40 %") {
		t.Error(words)
	}
	all := syncTruth{node: stall(func(*experiment.Cell, int) bool { return true })}.build(t)
	if all.Tunings[0].Best != "" || all.Verdict.Tone != Bad {
		t.Errorf("nobody served: %+v", all.Verdict)
	}
	page(t, all)
	text(t, all, 80)
}

// Nothing may be made of noise.
func TestSyncShowsNothingWhereThereIsNothing(t *testing.T) {
	r := syncTruth{noise: 0.05, node: func(c *experiment.Cell, _ int, f *newcomer) {
		pace := f.serve / syncTruthOf(c)
		f.serve = 10 * pace
		f.chain = 9 * pace
	}}.build(t)
	keepPage(t, r, "sync-nothing")
	tu := &r.Tunings[0]
	for _, e := range tu.Effects {
		if e.Shown || !strings.HasPrefix(e.words(), "~ ") {
			t.Errorf("%s: %s", e.name(), e.words())
		}
	}
	if tu.Gain != nil && tu.Gain.Shown || r.Verdict.Tone == Good || len(tu.Alike) == 0 {
		t.Errorf("gain %+v, verdict %+v", tu.Gain, r.Verdict)
	}
	if r.finding("interactions") {
		t.Error("an interaction is shown")
	}
}

const timeoutFile = `
scenario: sync
title: Adaptive timeouts
systems: [ledger]
link: {rate: 50Mbit, delay: 10ms}
sync:
  blocks: 3000
  peers: 8
  speeds: [lognormal 8Mbit x3]
  trouble: [none, 2 silent]
  vary:
    send_blocks_timeout: [60s, 2s, 10s, 30s, 180s]
repetitions: 6
warmup: 0
`

// A timeout that is too short gives up on slow peers, one that is too long waits
// for silent ones.
func timeoutTruth() syncTruth {
	return syncTruth{file: timeoutFile, node: func(c *experiment.Cell, block int, f *newcomer) {
		v, _ := c.Factor("sync.vary.send_blocks_timeout")
		s := map[float64]float64{2: 24, 10: 10, 30: 10.2, 60: 12, 180: 20}[v.Number]
		silent := is(c, "sync.trouble", "2 silent")
		if !silent && v.Number >= 60 {
			s = 10
		}
		pace := f.serve / syncDefault
		f.serve, f.chain = s*pace, s*pace*0.95
		lost := map[float64]int{2: 5, 10: 1}[v.Number]
		for i := range f.peers {
			p := &f.peers[i]
			p.rate = math.Round(8e6 * math.Pow(3, float64(i-4)/3))
			p.blocks = 3000 / float64(len(f.peers)-lost)
			if i < lost {
				p.blocks, p.timeouts = 0, 3
			}
			if silent && i >= 6 {
				p.blocks, p.timeouts, p.manner = 0, 2, peerSilent
			}
		}
	}}
}

func TestSyncTellsTheShapeOfANumber(t *testing.T) {
	r := timeoutTruth().build(t)
	keepPage(t, r, "sync-timeouts")
	if len(r.Shapes) != 2 {
		t.Fatalf("%d shapes", len(r.Shapes))
	}
	want := map[string]string{"trouble 2 silent": stats.UShape, "trouble none": stats.FallingShape}
	for _, n := range r.Shapes {
		if n.Shape != want[n.Where] || len(n.Levels) != 5 {
			t.Errorf("%s: %s, %s", n.Where, n.Shape, n.Why)
		}
		if n.Where == "trouble 2 silent" && (n.From != 10 || n.To != 30 && n.To != 10) {
			t.Errorf("best from %v to %v", n.From, n.To)
		}
	}
	// The default is the first level of the file, not the least; conditions are no knobs.
	if len(r.Tunings) != 3 || !r.Tunings[2].All || r.Tunings[0].All {
		t.Fatalf("%d tunings", len(r.Tunings))
	}
	base := r.synced(r.Tunings[0].base)
	if f, _ := base.cell.factor("sync.vary.send_blocks_timeout"); f.Number != 60 {
		t.Errorf("the default has %s", f.Value)
	}
	if !r.finding("useless-peers") || !r.finding("shape") {
		t.Errorf("findings %+v", r.Findings)
	}
}
