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
	if !strings.Contains(r.Verdict.Text, "−64 %") || r.Verdict.Tone != Good {
		t.Errorf("verdict: %+v", r.Verdict)
	}
	for _, rule := range []string{"best", "interactions", "as-good", "risks", "waiting"} {
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
	if r.EnvironmentOf("constants.ledger") != "" {
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

// A knob that makes most nodes stall and speeds up the others is not shown to be
// faster; one that has nothing to do with it still is. What was not considered is not
// counted among what the best was chosen from.
func TestSyncEffectsAreNotThoseOfSurvivors(t *testing.T) {
	r := syncTruth{node: func(c *experiment.Cell, block int, f *newcomer) {
		if is(c, "sync.vary.timeouts", "short") {
			f.serve *= 0.5
			f.chain *= 0.5
			if block < 4 {
				f.outcome, f.class, f.height, f.serve = record.Stalled, "stalled", 0.4, 30
			}
		}
	}}.build(t)
	keepPage(t, r, "sync-survivors")
	tu := &r.Tunings[0]
	e := effectNamed(t, tu, "timeouts short")
	if e.Shown || !e.Survivors || !strings.HasPrefix(e.words(), "~ ") || !strings.Contains(e.Warn, "16 of 24 with timeouts short, 0 of 24 with timeouts default") {
		t.Errorf("%s: shown %v, %q", e.words(), e.Shown, e.Warn)
	}
	for _, row := range r.effectsTable().Rows {
		for _, cell := range row {
			if row[1].Text == "timeouts short" && cell.Tone == Good {
				t.Errorf("the table calls it faster: %+v", row)
			}
		}
	}
	if e := effectNamed(t, tu, "subscriber none"); !e.Shown || e.Survivors {
		t.Errorf("subscriber none: %s, %q", e.words(), e.Warn)
	}
	if tu.Cells != 8 || tu.Whole != 4 {
		t.Errorf("%d cells, %d whole", tu.Cells, tu.Whole)
	}
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "best" })
	if words := r.Findings[i].Evidence[0]; !strings.Contains(words, "of 4 configurations (4 more not considered") {
		t.Error(words)
	}
	// Nor is a knob without an effect on survivors one to be left as it is.
	r = syncTruth{noise: 0.005, node: func(c *experiment.Cell, block int, f *newcomer) {
		if is(c, "sync.vary.timeouts", "short") {
			f.serve, f.chain = f.serve/truthTimeouts, f.chain/truthTimeouts
			if block < 4 {
				f.outcome, f.class, f.height, f.serve = record.Stalled, "stalled", 0.4, 30
			}
		}
	}}.build(t)
	if i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "no-gain" }); i >= 0 && strings.Contains(strings.Join(r.Findings[i].Evidence, "\n"), "timeouts short") {
		t.Errorf("to be left as they are: %v", r.Findings[i].Evidence)
	}
}

// The times of the verdict, the first figure and the table are the same, and their
// ratio is the gain: few trials, of which the medians are others.
func TestSyncTimesAreThoseOfTheGain(t *testing.T) {
	r := syncTruth{file: strings.Replace(syncFile, "repetitions: 6", "repetitions: 5", 1), noise: 0.1, node: func(c *experiment.Cell, block int, f *newcomer) {
		if block == 0 && is(c, "sync.vary.subscriber", "full") {
			f.serve, f.chain = f.serve*1.5, f.chain*1.5
		}
	}}.build(t)
	tu := &r.Tunings[0]
	if tu.Gain == nil || !tu.Gain.Shown {
		t.Fatalf("gain %+v", tu.Gain)
	}
	best, base := r.synced(tu.best), r.synced(tu.base)
	if math.Abs(float64(tu.after/tu.before/tu.Gain.Value)-1) > 1e-9 || math.Abs(best.metric("sync_time")/float64(tu.after)-1) > 1e-9 || math.Abs(base.metric("sync_time")/float64(tu.before)-1) > 1e-9 {
		t.Errorf("from %v to %v is %v; the table has %v and %v", tu.before, tu.after, tu.Gain.Value, base.time.Median, best.time.Median)
	}
	if median := float64(base.cell.Metrics["sync_time"].Median); math.Abs(median/float64(tu.before)-1) < 0.05 {
		t.Fatalf("the median %v is the mean %v: this test shows nothing", median, tu.before)
	}
	from, to := show(float64(tu.before), "s"), show(float64(tu.after), "s")
	if !strings.Contains(r.Verdict.Text, to+" instead of "+from) || base.timeEntry(r).Text != from || !strings.Contains(string(page(t, r)), "default: "+from) {
		t.Errorf("%s to %s: %s, table %s", from, to, r.Verdict.Text, base.timeEntry(r).Text)
	}
}

// A replay that took longer than the sync binds nothing, and no share of it above the
// whole is printed.
func TestSyncDisturbedReplayIsNoBound(t *testing.T) {
	r := syncTruth{metrics: func(_ *experiment.Cell, m map[string]float64) {
		m["replay"] = 2 * m["sync_time"]
		m["line"], m["line_share"] = m["replay"], m["replay"]/m["chain_time"]
	}}.build(t)
	if s := configuration(t, r, ""); s.Bound != "" || !r.finding("replay-disturbed") || r.finding("compute-bound") {
		t.Errorf("bound by %q, findings %+v", s.Bound, r.Findings)
	}
	if near := (syncTruth{}).build(t); near.finding("replay-disturbed") {
		t.Error("every replay is disturbed")
	}
	r = syncTruth{metrics: func(_ *experiment.Cell, m map[string]float64) {
		m["replay"] = 0.99 * m["sync_time"]
		m["line"], m["line_share"] = m["replay"], m["replay"]/m["chain_time"]
	}}.build(t)
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "compute-bound" })
	if i < 0 || strings.Contains(strings.Join(r.Findings[i].Evidence, "\n"), "after the first block") {
		t.Errorf("findings %+v", r.Findings)
	}
}

// The default is called the fastest when the others are shown to be slower.
func TestSyncSaysFastestWhenItIsShown(t *testing.T) {
	file := strings.Replace(syncFile, "storage: [disk, ram]", "storage: [disk]", 1)
	slower := func(by float64) func(*experiment.Cell, int, *newcomer) {
		return func(c *experiment.Cell, block int, f *newcomer) {
			pace := f.serve / syncTruthOf(c)
			f.serve = 10 * pace
			if c.ID != "c001" {
				f.serve *= by
			}
			f.chain = f.serve * 0.9
		}
	}
	if r := (syncTruth{file: file, node: slower(1.5)}).build(t); !strings.Contains(r.Verdict.Text, "the default is the fastest") {
		t.Error(r.Verdict.Text)
	}
	if r := (syncTruth{file: file, noise: 0.05, node: slower(1.005)}).build(t); strings.Contains(r.Verdict.Text, "fastest") {
		t.Error(r.Verdict.Text)
	}
}

// Drawn rates are each another one: peers are put together, and all are there.
func TestSyncPeersOfDrawnRates(t *testing.T) {
	r := syncTruth{file: timeoutFile, node: func(c *experiment.Cell, block int, f *newcomer) {
		for i := range f.peers {
			f.peers[i].rate = 1e6 * (1.1 + 0.1*float64(block)) * math.Exp2(float64(i/2)) // in four classes
		}
	}}.build(t)
	for i := range r.Syncs {
		s := &r.Syncs[i]
		if len(s.Peers) != 4 {
			t.Fatalf("%d rows of peers: %+v", len(s.Peers), s.Peers)
		}
		n := 0
		for k, p := range s.Peers {
			n += p.Peers
			if !(p.RateTo > p.Rate) || p.RateTo >= 2*p.Rate || k > 0 && p.RateTo >= s.Peers[k-1].Rate {
				t.Errorf("row %d: %v to %v", k, p.Rate, p.RateTo)
			}
		}
		if n != 8*6 {
			t.Errorf("%d of 48 peers", n)
		}
	}
	if e := r.Syncs[0].Peers[3].rateEntry(); !strings.Contains(e.Text, "1.1") || !strings.Contains(e.Text, " – ") {
		t.Errorf("%+v", e)
	}
}

// Where only conditions vary they are compared, all of them; and what a link carries
// besides the chain is said.
func TestSyncComparesConditions(t *testing.T) {
	file := "scenario: sync\nsystems: [ledger]\nlink: {rate: 50Mbit, delay: 10ms}\nsync: {blocks: 100, peers: 3, trouble: [none, 1 silent, 1 stranger, 2 silent, 2 stranger, 1 at 1Mbit]}\nrepetitions: 6\nwarmup: 0\n"
	r := syncTruth{file: file, node: func(c *experiment.Cell, _ int, f *newcomer) {
		if is(c, "sync.trouble", "2 silent") {
			f.serve, f.chain = 2*f.serve, 2*f.chain
		}
	}, metrics: func(c *experiment.Cell, m map[string]float64) {
		if is(c, "sync.trouble", "none") {
			m["overhead"] = 1.7
		}
	}}.build(t)
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "conditions" })
	if i < 0 || len(r.Findings[i].Evidence) != 6 {
		t.Fatalf("findings %+v", r.Findings)
	}
	for _, words := range r.Findings[i].Evidence {
		if strings.Contains(words, "2 silent") && (!strings.Contains(words, "+10") && !strings.Contains(words, "+9") || strings.Contains(words, "~")) {
			t.Error(words)
		}
	}
	if strings.Contains(r.Verdict.Text, "no knob was varied") {
		t.Error(r.Verdict.Text)
	}
	i = slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "sent-twice" })
	if i < 0 || len(r.Findings[i].Evidence) != 1 || !strings.Contains(r.Findings[i].Evidence[0], "1.7") {
		t.Errorf("findings %+v", r.Findings)
	}
	if r := (syncTruth{}).build(t); r.finding("conditions") || r.finding("sent-twice") {
		t.Error("knobs are compared as conditions, or 6 % are much")
	}
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
	if f, _ := base.cell.Factor("sync.vary.send_blocks_timeout"); f.Number != 60 {
		t.Errorf("the default has %s", f.Value)
	}
	if !r.finding("useless-peers") || !r.finding("shape") {
		t.Errorf("findings %+v", r.Findings)
	}
}

// A timeout so short that no node ever serves is the left arm of the U, not a level
// to be left out; one failure among many shows nothing.
func TestSyncShapeCountsNodesThatNeverServed(t *testing.T) {
	shape := func(times map[float64]float64, stalled map[float64]int) *NumberShape {
		t.Helper()
		r := syncTruth{file: strings.Replace(timeoutFile, "[none, 2 silent]", "[2 silent]", 1), node: func(c *experiment.Cell, block int, f *newcomer) {
			v, _ := c.Factor("sync.vary.send_blocks_timeout")
			f.serve *= times[v.Number] / syncDefault
			f.chain = f.serve * 0.95
			if block < stalled[v.Number] {
				f.outcome, f.class, f.height, f.serve = record.Stalled, "stalled", 0.1, 30
			}
		}}.build(t)
		if len(r.Shapes) != 1 {
			t.Fatalf("%d shapes", len(r.Shapes))
		}
		return &r.Shapes[0]
	}
	rising := map[float64]float64{2: 9.5, 10: 10, 30: 11, 60: 12, 180: 20}
	for _, c := range []struct {
		what    string
		times   map[float64]float64
		stalled map[float64]int
		want    string
		words   string
	}{
		{"the lowest never serves", rising, map[float64]int{2: 6}, stats.UShape, "too little and too much"},
		{"the two lowest never serve, times of two levels are left and one is too long", rising, map[float64]int{2: 6, 10: 6, 60: 6}, stats.UShape, "too little and too much"},
		{"it often stalls", rising, map[float64]int{2: 4}, stats.UShape, "too little and too much"},
		{"all that serve are alike", map[float64]float64{2: 10, 10: 10, 30: 10, 60: 10, 180: 10}, map[float64]int{2: 6}, stats.FallingShape, "less is shown to be worse"},
		{"the highest never serves", map[float64]float64{2: 10, 10: 10, 30: 10, 60: 10, 180: 10}, map[float64]int{180: 6}, stats.RisingShape, "more is shown to be worse"},
		{"one failure shows nothing", map[float64]float64{2: 20, 10: 10, 30: 11, 60: 12, 180: 20}, map[float64]int{2: 1}, stats.RisingShape, "more is shown to be worse"},
	} {
		n := shape(c.times, c.stalled)
		if n.Shape != c.want || !strings.Contains(n.words(), c.words) {
			t.Errorf("%s: %s: %s; %s", c.what, n.Shape, n.words(), n.Why)
		}
		if n.From < 10 && c.stalled[2] == 6 {
			t.Errorf("%s: the best is said to be from %v on, where nothing served", c.what, n.From)
		}
	}
}

const fractionFile = `
scenario: sync
systems: [ledger]
link: {rate: 50Mbit, delay: 10ms}
sync:
  blocks: 3000
  peers: [1, 4]
  storage: [disk, ram]
  vary:
    subscriber: [full, none]
    db_sync: ["on", "off"]
  design: 1/2
repetitions: 6
warmup: 0
`

// A fraction of a design says what it cannot tell apart.
func TestSyncNamesWhatAFractionMixes(t *testing.T) {
	r := syncTruth{file: fractionFile}.build(t)
	keepPage(t, r, "sync-fraction")
	tu := &r.Tunings[0]
	if tu.Cells != 8 || tu.Absent != 8 {
		t.Fatalf("%d cells, %d absent", tu.Cells, tu.Absent)
	}
	for _, e := range tu.Effects {
		if !e.interaction() && len(e.Aliases) > 0 {
			t.Errorf("resolution IV mixes %s with %v", e.name(), e.Aliases)
		}
		if e.interaction() && len(e.Aliases) == 0 {
			t.Errorf("resolution IV does not tell %s from another pair", e.name())
		}
	}
	if name, resolution := r.design(); name != "1/2" || resolution != "IV" {
		t.Errorf("design %s of resolution %s", name, resolution)
	}
	if !r.finding("aliases") {
		t.Error("no finding names the aliases")
	}
	best := r.cellByID(tu.Best)
	if !strings.Contains(r.configured(best), "subscriber none") {
		t.Errorf("best is %s", r.configured(best))
	}
}

const searchFile = `
scenario: sync
systems: [ledger]
link: {rate: 50Mbit, delay: 10ms}
sync:
  blocks: 3000
  peers: [4, 8]
  storage: [disk, ram]
  vary:
    subscriber: [full, none]
    sync_interval: [5s, 500ms]
  search: 20m
repetitions: 6
warmup: 0
`

// A search has visited few of the combinations; its report says which, and how far
// it is to be trusted.
func TestSyncTellsTheWayOfASearch(t *testing.T) {
	visited := func(c *experiment.Cell) bool {
		n := 0
		for _, f := range c.Factors {
			if f.Value == "8" || f.Value == "ram" || f.Value == "500ms" {
				n++
			}
		}
		return n == 0 || n == 1 && is(c, "sync.vary.subscriber", "none")
	}
	s := syncTruth{file: searchFile, only: visited}
	plan := s.plan(t)
	cell := func(values ...string) string {
		for _, c := range plan.Cells {
			if !slices.ContainsFunc(values, func(v string) bool {
				return !slices.ContainsFunc(c.Factors, func(f experiment.Factor) bool { return f.Value == v })
			}) {
				return c.ID
			}
		}
		t.Fatalf("no cell with %v", values)
		return ""
	}
	def, none := cell("4", "disk", "full", "5s"), cell("4", "disk", "none", "5s")
	s.search = []record.Search{{System: "ledger", Start: def, Best: none, Trials: 30, Spent: 300, Budget: 1200, Ended: record.SearchNoGain, Why: "no other value of any factor is faster", Races: []record.Race{
		{Pass: 1, Factor: "sync.vary.subscriber", From: "full", To: "none", Incumbent: def, Challenger: none, Pairs: 3, Ratio: 0.4, Lo: 0.38, Hi: 0.42, Result: record.RaceFaster, Why: "its interval is below 1"},
		{Pass: 1, Factor: "sync.storage", From: "disk", To: "ram", Incumbent: none, Challenger: cell("4", "ram", "none", "5s"), Pairs: 6, Ratio: 1.01, Lo: 0.97, Hi: 1.05, Result: record.RaceSame, Why: "repetitions are used up"},
	}}}
	r := s.build(t)
	keepPage(t, r, "sync-search")
	if !r.searched() || r.Run.State != "complete" || r.Run.Planned != r.Run.Done {
		t.Errorf("state %s, %d planned, %d done", r.Run.State, r.Run.Planned, r.Run.Done)
	}
	if len(r.Syncs) != 5 {
		t.Errorf("%d configurations of 5 that were visited", len(r.Syncs))
	}
	tu := &r.Tunings[0]
	if !strings.Contains(r.configured(r.cellByID(tu.Best)), "subscriber none") {
		t.Errorf("best is %s", r.configured(r.cellByID(tu.Best)))
	}
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "search" })
	if i < 0 || !strings.Contains(strings.Join(r.Findings[i].Evidence, "\n"), "5 of 16 combinations") || !strings.Contains(strings.Join(r.Findings[i].Evidence, "\n"), "stands at subscriber none") {
		t.Errorf("findings: %+v", r.Findings)
	}
	walk := r.walkTable()
	if len(walk.Rows) != 2 || walk.Rows[0][2].Text != "subscriber none" || walk.Rows[0][3].Text != "subscriber full" || walk.Rows[1][8].Text != record.RaceSame {
		t.Errorf("way: %+v", walk.Rows)
	}
	// No effect without an interval is shown.
	for _, e := range tu.Effects {
		if e.Shown && (!e.Lo.Known() || !e.Hi.Known()) {
			t.Errorf("%s is shown without an interval", e.name())
		}
	}
}

func TestSyncAlarms(t *testing.T) {
	r := syncTruth{metrics: func(c *experiment.Cell, m map[string]float64) {
		if is(c, "sync.storage", "ram") && is(c, "sync.vary.subscriber", "none") {
			m["link_line"] = m["chain_time"] * 1.2
		}
	}}.build(t)
	if !r.finding("beyond-line") || r.Verdict.Tone != Bad {
		t.Errorf("verdict %+v", r.Verdict)
	}
	// Nearer to one of the lines than to the other, and to neither.
	for _, c := range []struct {
		link, replay, serve float64
		want                string
	}{{9, 2, 10, boundLink}, {2, 9, 10, boundCompute}, {2, 3, 10, boundWaits}} {
		r := syncTruth{metrics: func(_ *experiment.Cell, m map[string]float64) {
			m["link_line"], m["replay"], m["line"] = c.link*0.8, c.replay*0.8, max(c.link, c.replay)*0.8
			m["line_share"] = max(c.link, c.replay) * 0.8 / (c.serve * 0.8)
		}}.build(t)
		if s := configuration(t, r, ""); s.Bound != c.want {
			t.Errorf("links %g s, replay %g s, took %g s: bound by %q", c.link, c.replay, c.serve, s.Bound)
		}
	}
}

// One trial of each shows nothing, and no trial at all is no reason to fail.
func TestSyncWithFewTrials(t *testing.T) {
	once := syncTruth{file: strings.Replace(syncFile, "repetitions: 6", "repetitions: 1", 1)}.build(t)
	keepPage(t, once, "sync-once")
	if once.Verdict.Tone == Good {
		t.Errorf("verdict %+v", once.Verdict)
	}
	for _, tu := range once.Tunings {
		for _, e := range tu.Effects {
			if e.Shown && !e.Lo.Known() {
				t.Errorf("%s is shown: %s", e.name(), e.words())
			}
		}
	}
	none := syncTruth{only: func(*experiment.Cell) bool { return false }}.build(t)
	page(t, none)
	text(t, none, 80)
	if none.Verdict.Text == "" {
		t.Error("no verdict")
	}
	single := syncTruth{file: "scenario: sync\nsystems: [ledger]\nlink: {rate: 50Mbit, delay: 10ms}\nsync: {blocks: 100}\nrepetitions: 6\nwarmup: 0\n"}.build(t)
	keepPage(t, single, "sync-single")
	if !strings.Contains(single.Verdict.Text, "no knob was varied") {
		t.Errorf("verdict %+v", single.Verdict)
	}
}

func TestGainInWords(t *testing.T) {
	for _, c := range []struct {
		v, lo, hi Num
		want      string
	}{
		{0.24, 0.22, 0.26, "−76 % (−74…−78)"},
		{1.12, 1.08, 1.15, "+12 % (+8…+15)"},
		{0.998, 0.99, 1.005, "−0.2 % (−1…+0.5)"},
		{0.5, unknown, unknown, "−50 %"},
		{5, 4, 6, "5.00× (4.00–6.00)"},
		{1, 1, 1, "0 % (0…0)"},
		{unknown, unknown, unknown, "–"},
	} {
		if got := gain(c.v, c.lo, c.hi); got != c.want {
			t.Errorf("%v: %s, want %s", c.v, got, c.want)
		}
	}
}

func TestSyncPageInChromium(t *testing.T) {
	for name, s := range map[string]syncTruth{"timeouts": timeoutTruth()} {
		r := s.build(t)
		path := filepath.Join(t.TempDir(), name+".html")
		must(t, os.WriteFile(path, page(t, r), 0o644))
		seen := look(t, "file://"+path)
		for _, n := range seen.Noise {
			t.Errorf("%s: %s", name, n)
		}
		if seen.Figures != len(r.Figures)+1 || seen.Pictures != seen.Plots {
			t.Errorf("%s: %d figures, %d plots, %d pictures", name, seen.Figures, seen.Plots, seen.Pictures)
		}
		for width, want := range map[string]int{"1280": 1280, "360": 360} {
			if seen.Widths[width] != want {
				t.Errorf("%s: at %s px the page is %d px wide", name, width, seen.Widths[width])
			}
		}
	}
}

// A node that has another chain at the right height has no time.
func TestSyncAnotherChain(t *testing.T) {
	r := syncTruth{node: func(c *experiment.Cell, block int, f *newcomer) {
		if is(c, "sync.storage", "ram") && block == 0 {
			f.outcome = record.WrongBytes
		}
	}}.build(t)
	if r.Verdict.Tone != Bad || !strings.Contains(r.Verdict.Text, "another chain") || !r.finding("wrong-bytes") {
		t.Errorf("verdict %+v", r.Verdict)
	}
	if s := configuration(t, r, "storage ram"); s.unfinished() != 1 {
		t.Errorf("%d unfinished", s.unfinished())
	}
}

// Where the best is not significantly faster, and a knob over all configurations is, the
// verdict says so: it does not contradict the table of effects.
func TestSyncVerdictAgreesWithItsEffects(t *testing.T) {
	r := syncTruth{}.build(t)
	tu := &r.Tunings[0]
	tu.gain.Shown = false
	effectNamed(t, tu, "timeouts short").Shown = true
	if words, better := r.verdictOf(tu); better || !strings.Contains(words, "timeouts short") || !strings.Contains(words, "is significant") {
		t.Error(words)
	}
	// One kind of mean in a row: the first block comes before the time to serve.
	for i := range r.Syncs {
		s := &r.Syncs[i]
		if first := s.timeOf("first_block").Median; first.Known() && s.time.Median.Known() && first > s.time.Median {
			t.Errorf("%s: first block after %v, serves after %v", s.Cell, first, s.time.Median)
		}
	}
}
