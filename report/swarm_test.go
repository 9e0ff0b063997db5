package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
)

// within reports whether a number is what it should be, but for a share of it.
func within(got Num, want, off float64) bool { return math.Abs(float64(got)-want) <= off*want }

// Without a goal the verdict compares with the baseline, and nothing is said of a goal.
func TestSwarmWithoutAGoal(t *testing.T) {
	file := strings.Replace(swarmFile, "gate: 20%, ", "", 1)
	slow := func(c *experiment.Cell, _ int, _ float64, all []leech) {
		if c.System == "boxo" {
			for i := range all {
				all[i].took *= 1.1
			}
		}
	}
	r := buildDir(t, swarmTruth{file: file, leechers: slow}.write(t))
	if !strings.Contains(r.Verdict.Text, "boxo is slower than deluge") || len(r.Gates) != 0 || r.finding("goal-missed") || r.finding("goal-open") {
		t.Errorf("%+v; gates %+v", r.Verdict, r.Gates)
	}
	if text := r.swarmTable().Head; slices.ContainsFunc(text, func(c Column) bool { return c.Name == "goal" }) {
		t.Errorf("a goal in the table: %+v", text)
	}
}

// The goal is decided by the interval, and only by it.
func TestGoalOfASwarm(t *testing.T) {
	stall := func(when func(system string, block int) bool) func(*experiment.Cell, int, float64, []leech) {
		return func(c *experiment.Cell, block int, line float64, all []leech) {
			if when(c.System, block) {
				for i := range all {
					all[i] = leech{took: 3 * line, got: 0.4, outcome: record.Stalled, class: "no further byte"}
				}
			}
		}
	}
	for _, c := range []struct {
		name  string
		truth swarmTruth
		state string
		ratio float64 // 0: none
	}{
		{"within", swarmTruth{}, RulePass, 1.05},
		{"beyond", swarmTruth{pace: map[string]float64{"deluge": 1.2, "boxo": 2.4}}, RuleFail, 2},
		{"on both sides", swarmTruth{leechers: func(c *experiment.Cell, block int, _ float64, all []leech) {
			if c.System == "boxo" {
				for i := range all {
					all[i].took *= []float64{1.02, 1.3}[block%2]
				}
			}
		}}, RuleOpen, 0},
		{"three trials", swarmTruth{file: strings.Replace(swarmFile, "repetitions: 8", "repetitions: 3", 1), pace: map[string]float64{"deluge": 1.2, "boxo": 2.4}}, RuleOpen, 2},
		{"never", swarmTruth{leechers: stall(func(s string, _ int) bool { return s == "boxo" })}, RuleFail, 0},
		{"never in most", swarmTruth{file: strings.Replace(swarmFile, "repetitions: 8", "repetitions: 12", 1), leechers: stall(func(s string, b int) bool { return s == "boxo" && b > 1 })}, RuleFail, 0},
		{"never in seven of eight", swarmTruth{leechers: stall(func(s string, b int) bool { return s == "boxo" && b > 0 })}, RuleFail, 0},
		{"never in six of eight", swarmTruth{leechers: stall(func(s string, b int) bool { return s == "boxo" && b > 1 })}, RuleOpen, 0},
		{"never in one of eight", swarmTruth{leechers: stall(func(s string, b int) bool { return s == "boxo" && b == 3 })}, RulePass, 1.05},
		{"the baseline never", swarmTruth{leechers: stall(func(s string, _ int) bool { return s == "deluge" })}, RuleOpen, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.truth.build(t)
			if g := r.gateOf(cellOf(t, r, "deluge"), "time_median"); g != nil {
				t.Errorf("the baseline is judged: %+v", g)
			}
			g := r.gateOf(cellOf(t, r, "boxo"), "time_median")
			if g == nil || g.State != c.state {
				t.Fatalf("%+v, want %s", g, c.state)
			}
			if c.ratio > 0 && !within(g.Value, c.ratio, 0.03) {
				t.Errorf("ratio %v, want %v", g.Value, c.ratio)
			}
			missed := slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Rule == "goal-missed" })
			if missed != (c.state == RuleFail) {
				t.Errorf("the finding is there: %v", missed)
			}
			says := map[string]string{RulePass: "boxo meets the goal (at most 20 % slower than deluge)", RuleFail: "boxo misses the goal", RuleOpen: "cannot be told"}[c.state]
			if !strings.Contains(r.Verdict.Text, says) {
				t.Errorf("verdict: %s", r.Verdict.Text)
			}
		})
	}
}

// A time that some trials never came to is not the median of the others.
func TestCensoredTimesOfASwarm(t *testing.T) {
	t.Parallel()
	r := swarmTruth{leechers: func(c *experiment.Cell, block int, line float64, all []leech) {
		if c.System == "boxo" && block < 3 {
			all[0] = leech{took: 5 * line, got: 0.7, outcome: record.Deadline, class: "deadline"}
		}
	}}.build(t)
	s := cellOf(t, r, "boxo")
	last, median := s.cell.Metrics["time_last"], s.cell.Metrics["time_median"]
	if last.N != 8 || last.beyond != 3 || last.Hi.Known() {
		t.Errorf("time_last: %+v; three of eight were longer than any", last)
	}
	if median.N != 8 || median.beyond != 0 || !median.Hi.Known() {
		t.Errorf("time_median: %+v; half of the leechers were done in every trial", median)
	}
	calm := cellOf(t, r, "deluge").cell.Metrics["time_last"]
	if float64(last.Median) <= float64(calm.Median) {
		t.Errorf("the last leecher of boxo after %v, of deluge after %v: what never ended was left out", last.Median, calm.Median)
	}
	if _, there := s.cell.Ratios["time_last"]; there {
		t.Error("a ratio of times that are not known")
	}
	end := s.Together[len(shares)-1]
	if end.Beyond != 3 || end.N != 8 {
		t.Errorf("100 %%: %+v", end)
	}
	if at := s.Together[3]; at.Beyond != 0 || !at.Median.Known() || at.Median >= end.Median {
		t.Errorf("50 %%: %+v", at)
	}
	// A speed that was too low to be told is lower than any.
	slow := swarmTruth{leechers: func(c *experiment.Cell, block int, line float64, all []leech) {
		if c.System == "boxo" && block < 3 {
			for i := range all {
				all[i] = leech{took: 5 * line, got: 0.7, outcome: record.Deadline, class: "deadline"}
			}
		}
	}}.build(t)
	v := cellOf(t, slow, "boxo").cell.Metrics["speed_median"]
	if v.N != 8 || v.beyond != 3 || v.Lo.Known() || float64(v.Median) >= float64(s.cell.Metrics["speed_median"].Median) {
		t.Errorf("speed with three of eight too slow to be told: %+v", v)
	}
}

// Leechers of one trial share its fate.
func TestRatesAreOverTrials(t *testing.T) {
	t.Parallel()
	parts := func(n ...float64) (all []stats.Count) {
		for _, x := range n {
			all = append(all, stats.Count{K: x, N: 10})
		}
		return all
	}
	alike, clustered := rateOf(parts(5, 5, 5, 5, 5, 5, 5, 5)), rateOf(parts(10, 0, 10, 0, 10, 0, 10, 0))
	if alike.Value != 0.5 || clustered.Value != 0.5 || alike.Worth <= clustered.Worth || clustered.Worth > 8 {
		t.Errorf("worth %d and %d leechers", alike.Worth, clustered.Worth)
	}
	if alike.Hi-alike.Lo >= clustered.Hi-clustered.Lo {
		t.Errorf("intervals %v–%v and %v–%v", alike.Lo, alike.Hi, clustered.Lo, clustered.Hi)
	}
	if q := rateOf(parts(10, 10, 10, 10)); q.Worth != 4 || q.Value != 1 || q.Lo > 0.5 {
		t.Errorf("four trials without a failure: %+v", q)
	}
	if q := rateOf(parts(7)); q.Lo.Known() || q.Hi.Known() || q.Value != 0.7 {
		t.Errorf("one trial: %+v", q)
	}
	r := swarmTruth{leechers: func(c *experiment.Cell, block int, line float64, all []leech) {
		if c.System == "boxo" && block%4 == 0 {
			for i := range all {
				all[i] = leech{took: 3 * line, got: 0.5, outcome: record.Stalled, class: "no further byte"}
			}
		}
		if c.System == "deluge" {
			all[2] = leech{took: line / 2, got: 0.5, outcome: record.Cancelled, class: "crashed on purpose"}
		}
	}}.build(t)
	s := cellOf(t, r, "boxo")
	ok, stalled := s.ok(), s.Outcomes["stalled"]
	if ok.N != 42 || ok.Of != 56 || stalled.N != 14 || ok.Worth > 12 {
		t.Errorf("ok %+v, stalled %+v", ok, stalled)
	}
	// What a fault took away on purpose is no failure of the system.
	s = cellOf(t, r, "deluge")
	if ok := s.ok(); ok.N != 48 || ok.Of != 48 || s.Outcomes["cancelled"].N != 8 || s.Outcomes["cancelled"].Of != 56 {
		t.Errorf("ok %+v, cancelled %+v", ok, s.Outcomes["cancelled"])
	}
	if c := s.cell; c.Success.OK != 48 || c.Success.Of != 48 || c.Success.Censored != 8 || c.Outcomes["ok"] != 48 {
		t.Errorf("the cell counts %+v, %v: a leecher counts once, not also for its disk", c.Success, c.Outcomes)
	}
}

// What a leecher has after it was decided about is not on the way to completion.
func TestMarksAfterTheEndAreNone(t *testing.T) {
	t.Parallel()
	r := swarmTruth{file: strings.Replace(swarmFile, "[deluge, boxo]", "[deluge]", 1), leechers: func(_ *experiment.Cell, _ int, _ float64, all []leech) {
		for i := range all {
			all[i] = leech{took: 10, got: 0.94, after: 0.97, outcome: record.Stalled}
		}
	}}.build(t)
	s := cellOf(t, r, "deluge")
	for i, share := range shares {
		for _, q := range []Reached{s.Leecher[i], s.Together[i]} {
			if (share > 0.94) != (q.Beyond == 8) {
				t.Errorf("%v of the content: %+v", share, q)
			}
		}
	}
}

// The way to completion is that of the marks.
func TestWayToCompletion(t *testing.T) {
	t.Parallel()
	r := swarmTruth{file: strings.Replace(swarmFile, "[deluge, boxo]", "[deluge]", 1), leechers: func(_ *experiment.Cell, _ int, _ float64, all []leech) {
		for i := range all {
			all[i] = leech{took: 10, got: 1, join: float64(i)} // one after the other, ten seconds each
		}
	}}.build(t)
	s := cellOf(t, r, "deluge")
	for i, want := range []float64{0.14, 0.54, 2.53, 5.01, 7.5, 9.5, 10} {
		if q := s.Leecher[i]; !within(q.Median, want, 0.02) || q.Share != shares[i] || q.N != 8 {
			t.Errorf("a leecher had %v after %v, want %v", shares[i], q.Median, want)
		}
	}
	// Seven leechers from 0 to 16 s; by symmetry they have half of it together at 8.
	if q := s.Together[3]; !within(q.Median, 8.02, 0.02) {
		t.Errorf("half of all after %v", q.Median)
	}
	if q := s.Together[6]; !within(q.Median, 16, 0.01) {
		t.Errorf("all after %v", q.Median)
	}
	for i := 1; i < len(shares); i++ {
		if s.Together[i].Median < s.Together[i-1].Median || s.Leecher[i].Median < s.Leecher[i-1].Median {
			t.Error("more of the content came earlier")
		}
	}
}

// The timeline shows the middle trial, by a rule that everyone can check.
func TestTimelineShowsTheMiddleTrial(t *testing.T) {
	t.Parallel()
	r := swarmTruth{file: strings.Replace(swarmFile, "[deluge, boxo]", "[deluge]", 1), leechers: func(_ *experiment.Cell, block int, line float64, all []leech) {
		for i := range all {
			all[i].took = line * []float64{9, 2, 3, 4, 5, 6, 7, 8}[block]
		}
		if block == 0 {
			all[0] = leech{took: 1, got: 0.1, outcome: record.Stalled, class: "no further byte"}
		}
	}}.build(t)
	s := cellOf(t, r, "deluge")
	shown, ok := s.shown()
	if !ok || shown.Block != 4 { // of the seven finished, 5 × line
		t.Errorf("block %d is shown: %v", shown.Block, ok)
	}
}

// What a fault costs is told beside the same cell without it.
func TestFaultsAreComparedWithNone(t *testing.T) {
	t.Parallel()
	file := strings.Replace(swarmFile, "seeders: 1}", "seeders: 1, faults: [none, 'crash seeders at 50% for 10s']}", 1)
	r := swarmTruth{file: file, leechers: func(c *experiment.Cell, _ int, _ float64, all []leech) {
		if c.Disseminate.Faults != "none" {
			for i := range all {
				all[i].took *= 1.7
			}
		}
	}, metrics: func(c *experiment.Cell, _ int, m map[string]float64) {
		if c.Disseminate.Faults != "none" {
			m["recovery"], m["recovered"], m["stalls"] = map[string]float64{"deluge": 2, "boxo": 14}[c.System], 1, 7
		}
	}, events: func(c *experiment.Cell, epoch time.Time) []record.Event {
		if c.Disseminate.Faults == "none" {
			return nil
		}
		return []record.Event{{At: epoch.Add(300 * time.Millisecond), Kind: "fault", What: "crash begins", Detail: "crash seeders at 50% for 200ms: " + c.System + "-01", Took: time.Millisecond},
			{At: epoch.Add(500 * time.Millisecond), Kind: "fault", What: "crash ends", Detail: "crash seeders at 50% for 200ms: " + c.System + "-01", Took: 30 * time.Millisecond},
			{At: epoch.Add(400 * time.Millisecond), Kind: "node", What: "stalled", Detail: c.System + "-03: no further byte"}}
	}}.build(t)
	for _, system := range []string{"deluge", "boxo"} {
		s := cellOf(t, r, system, "crash seeders at 50% for 10s")
		if len(s.Against) != 2 || !within(s.Against[0].Value, 1.7, 0.03) || !s.Against[0].Shown || !within(s.Against[1].Value, 1.7, 0.03) {
			t.Errorf("%s: %+v", system, s.Against)
		}
		if s.Line.Known() || s.Faults == noFaults {
			t.Errorf("%s: a load line of %v with faults", system, s.Line)
		}
		if calm := cellOf(t, r, system, "none"); calm.Against != nil || !calm.Line.Known() {
			t.Errorf("%s without faults: %+v, line %v", system, calm.Against, calm.Line)
		}
	}
	slow := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "slow-recovery" })
	if slow < 0 || len(r.Findings[slow].Evidence) != 1 || !strings.HasPrefix(r.Findings[slow].Evidence[0], "boxo") {
		t.Errorf("findings %+v", r.Findings)
	}
	// The moments are on the timeline: as a span, and at its node.
	i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.ID == "timeline" })
	if i < 0 {
		t.Fatal("no timeline")
	}
	b, err := json.Marshal(r.Figures[i].Panels)
	must(t, err)
	for _, want := range []string{`"x":0.3,"x2":0.5`, `"node":"boxo-03","tip":"boxo-03, 400 ms after the release: stalled (boxo-03: no further byte)","x":0.4`, "boxo-01 (seeder)"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("the timeline lacks %s", want)
		}
	}
}

// Each rule finds its own fault, and only it; a sound run has no finding.
func TestFindingsOfSwarms(t *testing.T) {
	metric := func(key string, v float64) swarmTruth {
		return swarmTruth{metrics: func(c *experiment.Cell, _ int, m map[string]float64) {
			if c.System == "boxo" {
				m[key] = v
			}
		}}
	}
	two := strings.Replace(swarmFile, "seeders: 1}", "seeders: 2}", 1)
	for rule, truth := range map[string]swarmTruth{
		"":            {},
		"two seeders": {file: two},
		"beyond-line": {pace: map[string]float64{"deluge": 1.2, "boxo": 0.8}},
		"waiting": {file: strings.Replace(swarmFile, "gate: 20%", "gate: 100%", 1), pace: map[string]float64{"deluge": 1.2, "boxo": 2.3}, seeders: func(c *experiment.Cell, sent []float64) {
			if c.System == "boxo" {
				sent[0] = 1.2
			}
		}},
		"one-link-full": {file: strings.Replace(swarmFile, "gate: 20%", "gate: 100%", 1), pace: map[string]float64{"deluge": 1.2, "boxo": 2.3}, seeders: func(c *experiment.Cell, sent []float64) {
			if c.System == "boxo" {
				sent[0] = 2.35 // in 2.3 times what the link needs for the content once
			}
		}},
		"machine-busy": {file: strings.Replace(swarmFile, "gate: 20%", "gate: 100%", 1) + "limits: {others: none, machine: none}\n", pace: map[string]float64{"deluge": 1.2, "boxo": 2.3}, metrics: func(c *experiment.Cell, _ int, m map[string]float64) {
			if c.System == "boxo" {
				m["box_cpu"], m["others_busy"] = 0.99, 0.8
			}
		}},
		"sent-twice":   metric("overhead", 1.6),
		"no-sharing":   metric("seeder_share", 0.97),
		"start-spread": metric("start_spread", 0.2),
		"coarse":       metric("resolution", 0.3),
		"coarse in one trial": {metrics: func(c *experiment.Cell, block int, m map[string]float64) {
			if c.System == "boxo" && block == 2 {
				m["resolution"] = 0.5
			}
		}},
		"harness-busy": metric("harness_cpu", 0.12),
		"disk-lags":    metric("disk_last", 2.5),
		"unbalanced": {file: two, seeders: func(c *experiment.Cell, sent []float64) {
			if c.System == "boxo" {
				sent[0], sent[1] = 5, 0.1
			}
		}},
		"leechers-unfinished": {leechers: func(c *experiment.Cell, block int, line float64, all []leech) {
			if c.System == "boxo" && block == 2 {
				all[1] = leech{took: 4 * line, got: 0.97, outcome: record.Stalled, class: "no further byte"}
			}
		}},
		"wrong-bytes": {leechers: func(c *experiment.Cell, block int, _ float64, all []leech) {
			if c.System == "boxo" && block == 2 {
				all[1].outcome, all[1].class = record.WrongBytes, "differs at 4096"
			}
		}},
		"link-off": {trial: func(c *experiment.Cell, block int, x *record.Trial) {
			if c.System == "boxo" && block == 2 {
				x.Invalid = []string{record.ReasonEmulatorLate}
			}
		}},
		"imported": {imported: &experiment.Imported{Format: "a log of another program", From: []string{"log.csv"}, Unknown: []string{"the links were not measured"}}},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			r := truth.build(t)
			var found []string
			for _, f := range r.Findings {
				found = append(found, f.Rule)
				if f.Rule == "imported" {
					if e := strings.Join(f.Evidence, "; "); !strings.Contains(f.Text, "log.csv") || !strings.Contains(e, "the links were not measured") {
						t.Errorf("evidence %q", f.Evidence)
					}
				} else if !slices.ContainsFunc(f.Evidence, func(e string) bool { return strings.HasPrefix(e, "boxo") }) {
					t.Errorf("%s: evidence %q", f.Rule, f.Evidence)
				}
			}
			want := []string{rule}
			switch rule {
			case "", "two seeders":
				want = nil
			case "coarse in one trial":
				want = []string{"coarse"}
			case "leechers-unfinished":
				want = []string{rule, "goal-met-unfinished"} // the last leecher's time is not known in one trial
			case "wrong-bytes":
				want = []string{rule, "leechers-unfinished", "goal-met-unfinished"}
			}
			slices.Sort(want)
			slices.Sort(found)
			if !slices.Equal(found, want) {
				t.Errorf("found %v, want %v", found, want)
			}
		})
	}
}

// The lens speaks of metrics that the scenario has.
func TestLensKnowsTheScenariosMetrics(t *testing.T) {
	l := disseminateLens()
	keys := append([]string{l.headline(planView{}), l.steady, "line", "line_share", "speed_line", "line_median_share"}, append(slices.Concat(gateMetrics, swarmTimes), l.compared...)...)
	for _, c := range l.resources {
		if c.key != "emulator_cpu" { // of emulators that are processes
			keys = append(keys, c.key)
		}
	}
	for _, key := range keys {
		if !slices.ContainsFunc(scenario.Disseminate{}.Metrics(), func(m record.Metric) bool { return m.Key == key }) {
			t.Errorf("the scenario has no metric %s", key)
		}
	}
}

// The study's grid has a panel for each share of seeders.
func TestSwarmPanelsAreBySeederRatio(t *testing.T) {
	t.Parallel()
	file := strings.NewReplacer("nodes: 8, seeders: 1}", "nodes: [4, 8, 16], seeders: [1, 2, 4, 8]}\nwhere: [\"2 * disseminate.seeders <= disseminate.nodes\", \"16 >= disseminate.seeders\"]", "repetitions: 8", "repetitions: 1").Replace(swarmFile)
	r := swarmTruth{file: file}.build(t)
	if r.shape.axis == nil || r.shape.axis.Path != nodesPath {
		t.Fatalf("axis %+v", r.shape.axis)
	}
	var names []string
	for _, k := range r.shape.groups {
		names = append(names, r.shape.names[k])
	}
	slices.Sort(names)
	if want := []string{"seeders 12.5 % of nodes", "seeders 25 % of nodes", "seeders 50 % of nodes", "seeders 6.25 % of nodes"}; !slices.Equal(names, want) {
		t.Errorf("panels %q, want %q", names, want)
	}
}

// Labels that are too long for a column of the terminal stay apart: they are
// numbered, and written in full below.
func TestLongLabelsInTheTerminal(t *testing.T) {
	t.Parallel()
	faults := []string{"crash seeders at 25% for 5s", "crash seeders at 75% for 5s", "crash seeders at 75% for 9s"}
	file := strings.NewReplacer("[deluge, boxo]", "[deluge]", "seeders: 1}", "seeders: 1, faults: [none, '"+strings.Join(faults, "', '")+"']}", "repetitions: 8", "repetitions: 2").Replace(swarmFile)
	text := terminal(t, swarmTruth{file: file}.build(t))
	for i, want := range faults {
		if n := strings.Count(text, fmt.Sprintf("[%d]", i+1)); n < 3 || strings.Count(text, want) == 0 {
			t.Errorf("%q is [%d] %d times in\n%s", want, i+1, n, text)
		}
	}
	if strings.Contains(text, "…") || !strings.Contains(text, "none") {
		t.Errorf("labels are cut:\n%s", text)
	}
}

func terminal(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	must(t, r.WriteText(&b, 100))
	return b.String()
}

// People count blocks from 1.
func TestWordsOfBlocks(t *testing.T) {
	t.Parallel()
	r := swarmTruth{trial: func(c *experiment.Cell, block int, x *record.Trial) {
		if c.System == "boxo" && block == 2 {
			x.Invalid = []string{record.ReasonEmulatorLate}
		}
	}}.build(t)
	if table := r.validityTable(); len(table.Rows) != 1 || table.Rows[0][3].Text != "3" || r.Invalid[0].Block != 2 {
		t.Errorf("the third block is %+v", table.Rows)
	}
	if got := blockEntry(-1).Text; got != "warm-up" {
		t.Errorf("a warm-up is block %q", got)
	}
}

// A ratio over all cells says which are not in it: where a system never came to
// the end it has none.
func TestPooledRatiosSayWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	r := swarmTruth{file: strings.Replace(swarmFile, "nodes: 8", "nodes: [4, 6, 8]", 1), leechers: func(c *experiment.Cell, block int, line float64, all []leech) {
		if c.System == "boxo" && c.Disseminate.Nodes == 6 && block == 2 {
			for i := range all {
				all[i] = leech{took: 4 * line, got: 0.5, outcome: record.Stalled}
			}
		}
	}}.build(t)
	var text string
	for _, a := range r.Answer {
		if a.System == "boxo" {
			text = a.Text
		}
	}
	if !strings.Contains(text, "in that ratio are not: 1 of its 3 cells") {
		t.Error(text)
	}
}

// Of a system without a valid trial it is not said that its leechers got anything.
func TestVerdictOfSystemsWithoutTrials(t *testing.T) {
	t.Parallel()
	r := swarmTruth{trial: func(c *experiment.Cell, _ int, x *record.Trial) {
		if c.System == "boxo" {
			x.Invalid = []string{record.ReasonEmulatorLate}
		}
	}}.build(t)
	if !strings.Contains(r.Verdict.Text, "every leecher of valid trials got everything, and boxo had none") || r.Verdict.Tone != Warn {
		t.Errorf("%+v", r.Verdict)
	}
}

// A cell without a valid trial has no rates, and a count is a whole number.
func TestNothingIsNotZero(t *testing.T) {
	t.Parallel()
	r := swarmTruth{trial: func(c *experiment.Cell, _ int, x *record.Trial) {
		x.Metrics["stalls"] = 3
		if c.System == "boxo" {
			x.Invalid = []string{record.ReasonEmulatorLate}
		}
	}}.build(t)
	table := r.outcomeTable()
	at := map[string]int{}
	for i, c := range table.Head {
		at[c.Name] = i
	}
	for _, row := range table.Rows {
		rate, stalls, leechers := row[at["ok"]].Text, row[at["stalls"]].Text, row[at["leechers"]].Text
		switch row[at["system"]].Text {
		case "boxo":
			if rate != "–" || stalls != "–" || leechers != "–" {
				t.Errorf("no valid trial: ok %s, stalls %s, leechers %s", rate, stalls, leechers)
			}
		default:
			if rate != "100 %" || stalls != "3" || leechers != "56" {
				t.Errorf("ok %s, stalls %s, leechers %s", rate, stalls, leechers)
			}
		}
	}
}

// Whatever the page shows can be read without its pictures, and what it says fits
// a terminal.
func TestSwarmPage(t *testing.T) {
	t.Parallel()
	file := strings.NewReplacer("nodes: 8, seeders: 1}", "nodes: [4, 8], seeders: [1, 2], faults: [none, 'cut 50% of nodes at 30% for 20s; crash seeders at 60% for 5s']}", "repetitions: 8", "repetitions: 3").Replace(swarmFile)
	r := swarmTruth{file: file, leechers: func(c *experiment.Cell, block int, line float64, all []leech) {
		if c.Disseminate.Faults != "none" {
			all[0] = leech{took: 3 * line, got: 0.5, outcome: record.Stalled, class: "no further byte"}
			all[1] = leech{took: line / 3, outcome: record.Cancelled, class: "crashed on purpose"}
		}
	}}.build(t)
	src := page(t, r)
	doc, err := html.Parse(bytes.NewReader(src))
	must(t, err)
	figures, tables := map[string]bool{}, map[string]bool{}
	walk(doc, func(n *html.Node) {
		if n.Type != html.ElementNode {
			return
		}
		if n.Data == "section" {
			tables[attr(n, "id")] = true
		}
		if n.Data != "figure" {
			return
		}
		figures[strings.TrimPrefix(attr(n, "id"), "fig-")] = true
		has := map[string]string{}
		walk(n, func(n *html.Node) {
			if n.Type == html.ElementNode && has[n.Data] == "" {
				has[n.Data] = textOf(n)
			}
		})
		if has["figcaption"] == "" || has["tbody"] == "" || !strings.Contains(has["figcaption"], "n = ") {
			t.Errorf("%s: caption %q", attr(n, "id"), has["figcaption"])
		}
	})
	for _, id := range []string{"hero", "speed", "time_median-ratio", "time_last-ratio", "time-last", "completion", "done", "timeline", "traffic", "success", "outcomes", "node-memory"} {
		if !figures[id] {
			t.Errorf("no figure %s among %v", id, figures)
		}
	}
	for _, id := range []string{"gates", "ends", "completion", "nodes", "cells"} {
		if !tables[id] {
			t.Errorf("no section %s", id)
		}
	}
	for _, f := range r.Figures {
		for _, row := range f.Table.Rows {
			if len(row) != len(f.Table.Head) {
				t.Fatalf("%s: %d columns and %d heads", f.ID, len(row), len(f.Table.Head))
			}
		}
	}
	for _, s := range r.swarmSections() {
		for _, row := range s.Table.Rows {
			if len(row) != len(s.Table.Head) {
				t.Fatalf("%s: %d columns and %d heads", s.ID, len(row), len(s.Table.Head))
			}
		}
	}
	for _, row := range r.cellTable().Rows {
		if len(row) != len(r.cellTable().Head) {
			t.Fatalf("cells: %d columns and %d heads", len(row), len(r.cellTable().Head))
		}
	}
	for _, line := range strings.Split(text(t, r, 100), "\n") {
		if n := len([]rune(line)); n > 100 || strings.HasSuffix(line, "…") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	var b bytes.Buffer
	must(t, r.WriteJSON(&b))
	var back Report
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	must(t, d.Decode(&back))
	if len(back.Swarms) != len(r.Swarms) || len(back.Gates) != 2 || !back.Gates[0].Goal {
		t.Errorf("read back: %d swarms", len(back.Swarms))
	}
}

func TestSwarmPageInChromium(t *testing.T) {
	r := swarmTruth{file: strings.Replace(swarmFile, "nodes: 8, seeders: 1}", "nodes: [4, 8], seeders: 1}", 1)}.build(t)
	path := filepath.Join(t.TempDir(), "report.html")
	must(t, os.WriteFile(path, page(t, r), 0o644))
	s := look(t, "file://"+path)
	for _, n := range append(s.Noise, s.Nameless...) {
		t.Error(n)
	}
	if s.Pictures != s.Plots || s.Pictures == 0 {
		t.Errorf("%d plots, %d pictures", s.Plots, s.Pictures)
	}
}

// A cell of which some leecher never finished has no ratio: that is told where the
// ratios of the others are.
func TestCellsWithoutARatioAreTold(t *testing.T) {
	t.Parallel()
	file := strings.Replace(swarmFile, "nodes: 8", "nodes: [4, 8, 16]", 1)
	r := swarmTruth{file: file, leechers: func(c *experiment.Cell, block int, _ float64, all []leech) {
		if c.System == "boxo" && c.Disseminate.Nodes == 8 && block == 3 {
			for i := range all {
				all[i] = leech{took: 1, got: 0.1, outcome: record.Stalled, class: "no further byte"}
			}
		}
	}}.build(t)
	for _, a := range r.Answer {
		if want := ", over all cells that can be compared, without 1 cell that has no ratio (nodes 8: boxo never came to it in 1 of 8 trials)"; a.System == "boxo" && !strings.Contains(a.Text, want) {
			t.Errorf("%q lacks %q", a.Text, want)
		}
	}
	for _, key := range gateMetrics {
		f := r.ratioFigureWith(key, r.gateMost(), "the goal")
		raw, err := json.Marshal(f.Panels)
		must(t, err)
		if !strings.Contains(string(raw), `"kind":"triangle-up"`) || !strings.Contains(f.Reads, "boxo never came to it in 1 of 8 trials") || !slices.ContainsFunc(f.Legend, func(l Legend) bool { return l.Label == "not done" }) {
			t.Errorf("%s: %s, legend %v", key, f.Reads, f.Legend)
		}
	}
}

// Trials in which the fault never came, or was not undone, are counted and told.
func TestPartialFaultsAreTold(t *testing.T) {
	t.Parallel()
	file := strings.Replace(swarmFile, "seeders: 1}", "seeders: 1, faults: ['crash seeders at 50% for 10s']}", 1)
	trial := 0
	r := swarmTruth{file: file, events: func(c *experiment.Cell, epoch time.Time) []record.Event {
		if c.System != "boxo" {
			return nil
		}
		what := []string{"crash begins", "crash ends"}[:min(trial, 2)]
		trial++
		var all []record.Event
		for i, w := range what {
			all = append(all, record.Event{At: epoch.Add(time.Duration(i+3) * 100 * time.Millisecond), Kind: "fault", What: w, Detail: "crash seeders at 50% for 10s: boxo-01"})
		}
		return all
	}}.build(t)
	s := cellOf(t, r, "boxo")
	if want := []FaultCount{{Fault: "crash seeders at 50% for 10s", Trials: 8, Came: 7, Undone: 6, Ends: true}}; !slices.Equal(s.FaultCounts, want) {
		t.Errorf("%+v", s.FaultCounts)
	}
	found := false
	for _, f := range r.Findings {
		if f.Rule == "partial-faults" {
			found = slices.ContainsFunc(f.Evidence, func(e string) bool {
				return strings.Contains(e, "boxo") && strings.Contains(e, "came in 7 of 8 trials, undone before the end in 6")
			})
		}
	}
	if !found || !strings.Contains(s.faultEntry().Text, "7 of 8") {
		t.Errorf("findings %+v", r.Findings)
	}
}
