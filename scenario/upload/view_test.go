package upload

import (
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/facts"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

var update = flag.Bool("update", false, "write testdata/rows/*.txt anew")

// unpack opens a committed run.
func unpack(t *testing.T, name string) *record.Reader {
	t.Helper()
	r, err := record.Open(facts.Unpack(t, name))
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func result(t *testing.T, name string) *analysis.Result {
	t.Helper()
	v := Scenario{}.View()
	if name == "collect" {
		v = Collect{}.View()
	}
	run := unpack(t, name)
	plan, err := analysis.ReadPlan(run)
	must(t, err)
	f, err := analysis.Load(run, plan, v, nil)
	must(t, err)
	r, err := analysis.Analyse(f)
	must(t, err)
	return r
}

// TestRows compares the numbers of committed load tests, of whole trials and of entities, with
// the recorded ones. Accept a change with -update, and explain it in the commit.
func TestRows(t *testing.T) {
	for _, name := range []string{"upload", "upload-killed", "upload-leak", "collect"} {
		var lines []string
		for _, row := range result(t, name).Frame.Rows {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("%s %s %.6g %s", row.Metric, row.Entity, row.Value,
				row.Exact), " "))
		}
		slices.Sort(lines)
		got, path := strings.Join(lines, "\n")+"\n", filepath.Join("testdata", "rows", name+".txt")
		if *update {
			must(t, os.WriteFile(path, []byte(got), 0o644))
			continue
		}
		want, err := os.ReadFile(path)
		must(t, err)
		had := strings.Split(strings.TrimSuffix(string(want), "\n"), "\n")
		for _, line := range lines {
			if !slices.Contains(had, line) {
				t.Errorf("%s: new: %s", path, line)
			}
		}
		for _, line := range had {
			if !slices.Contains(lines, line) {
				t.Errorf("%s: gone: %s", path, line)
			}
		}
	}
}

// The amounts by purpose, including the unexplained part, add up exactly to the money used, and
// together with the unspent part to the money spent.
func TestPurposesAddUp(t *testing.T) {
	for _, name := range []string{"upload", "upload-killed", "upload-leak"} {
		total, purposes := map[string]*big.Rat{}, new(big.Rat)
		for _, row := range result(t, name).Frame.Rows {
			if !slices.Contains([]string{"money", "money_used", "money_unspent", "money_spent"}, row.Metric) {
				continue
			}
			v, ok := new(big.Rat).SetString(row.Exact)
			if !ok {
				t.Fatalf("%s: %s %s has no exact amount: %q", name, row.Metric, row.Entity, row.Exact)
			}
			if row.Metric != "money" {
				total[row.Metric] = v
			} else if row.Entity != system.ReadUnspent {
				purposes.Add(purposes, v)
			}
		}
		used, all := total["money_used"], new(big.Rat).Add(total["money_used"], total["money_unspent"])
		if used.Sign() <= 0 || purposes.Cmp(used) != 0 || all.Cmp(total["money_spent"]) != 0 {
			t.Errorf("%s: used %s, by purpose %s; spent %s, used and unspent %s", name, used.FloatString(24),
				purposes.FloatString(24), total["money_spent"].FloatString(24), all.FloatString(24))
		}
	}
}

// A trial without recorded metrics has each number once.
func TestNumbersOfAnUnfinishedTrial(t *testing.T) {
	for _, name := range []string{"upload", "collect"} {
		run := unpack(t, name)
		trial := *result(t, name).Frame.Trials[0]
		trial.Metrics = nil
		all, err := read(&trial, run)
		must(t, err)
		values := map[key]float64{}
		for _, row := range all.Rows {
			k := key{row.Metric, row.Entity}
			if _, twice := values[k]; twice {
				t.Errorf("%s: %s is there twice", name, k)
			}
			values[k] = row.Value
		}
		// Bytes in buffers count in neither.
		size := values[key{"stored_bytes", ""}] / values[key{"files", ""}]
		each, efficiency := values[key{"absolute_per_file", ""}], values[key{"storage_efficiency", ""}]
		if !(math.Abs(each*efficiency-size) < 0.02*size) {
			t.Errorf("%s: absolute_per_file is %v, efficiency %v, an object %v", name, each, efficiency, size)
		}
	}
}

func TestCodingOfIdentities(t *testing.T) {
	for _, c := range []struct {
		said map[string]string
		want coding
	}{
		{map[string]string{"redundancy": "10 data + 20 parity pieces", "sector": "4096"}, coding{4096, 10, 30}},
		{map[string]string{"redundancy": "2 of 10 shards", "sector": "7"}, coding{7, 2, 10}},
		{map[string]string{"shares": "3 of 10, on 7 different nodes"}, coding{0, 3, 10}},
		{map[string]string{"redundancy": "three of ten", "sector": "7"}, coding{}},
		{nil, coding{}},
	} {
		if got := codingOf(c.said); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.said, got, c.want)
		}
	}
}

// The series of money ends at the money used, including money used before the first poll.
func TestMoneyOverTime(t *testing.T) {
	for _, c := range []struct{ used, first, last float64 }{{510, 500, 510}, {10, 0, 10}, {nan, 0, 10}} {
		l := &loadTest{readings: &readings{values: map[string]series{
			moneyUsed: {{Start: 0, Value: 0}, {Start: 120, Value: 10}}}}, spending: c.used}
		if got := l.usedByPoll().values(); got[0] != c.first || got[1] != c.last {
			t.Errorf("%v used: %v", c.used, got)
		}
	}
}

// Ten objects are accepted; four of them are in the client's buffers at the last poll and take no
// room on the servers. The efficiency of a finished test does not include these.
func TestBufferedObjectsTookNothing(t *testing.T) {
	const size = 1000
	jobs := make([]record.Job, 10)
	for i := range jobs {
		jobs[i] = record.Job{Object: int64(i), Size: size, State: record.JobAccepted, Attempts: 1, Began: time.Second,
			Accepted: 2 * time.Second}
	}
	poll := func(at time.Duration, absolute, file, buffered float64) record.Poll {
		return record.Poll{Start: at, End: at + time.Millisecond,
			Readings: []record.Reading{{Name: system.ReadAbsolute, Value: absolute},
				{Name: system.ReadFileBytes, Value: file}, {Name: "buffered_bytes", Value: buffered}}}
	}
	for _, before := range []float64{0, 5 * size} { // bytes stored by others
		in := newLedger().Recorded()
		in.Cell, in.Jobs = uploadCell(10, size), slices.Values(jobs)
		in.Polls = slices.Values([]record.Poll{
			poll(0, 3*before, before, 0), poll(time.Minute, 3*(before+6*size), before+10*size, 4*size)})
		m := Scenario{}.Measure(in)
		for key, want := range map[string]float64{"absolute_bytes": 18 * size, "absolute_per_file": 3 * size,
			"expansion": 3, "storage_efficiency": 1. / 3} {
			if math.Abs(m[key]-want) > 1e-9*want {
				t.Errorf("%v bytes before: %s is %v, want %v", before, key, m[key], want)
			}
		}
	}
}

// wallets returns the readings of polls every ten minutes whose sums of wallet and contracts are
// levels.
func wallets(moved float64, levels ...[]int64) *readings {
	w := &readings{last: map[string]*big.Int{system.ReadBalance: big.NewInt(1000)}}
	for i, v := range slices.Concat(levels...) {
		at := float64(600 * i)
		w.wealth = append(w.wealth, entry{at, at + 1, big.NewInt(v), moved})
	}
	return w
}

func TestMoneyThatDoesNotComeBackIsMissing(t *testing.T) {
	times10 := func(v int64) []int64 { return slices.Repeat([]int64{v}, 10) }
	for _, c := range []struct {
		name     string
		polls    *readings
		amount   int64
		from, to float64 // indexes of polls
	}{
		{"constant", wallets(0, times10(1000), times10(1000)), 0, 0, 0},
		{"lost", wallets(0, times10(1000), times10(960)), 40, 9, 10},
		{"lost twice", wallets(0, times10(1000), times10(960), times10(900)), 100, 9, 10},
		{"came back", wallets(0, times10(1000), times10(960), times10(1000)), 0, 0, 0},
		{"under way at the end", wallets(0, times10(1000), []int64{1000, 960, 960}), 0, 0, 0},
		{"came in", wallets(0, times10(1000), times10(1100)), 0, 0, 0},
		{"too few polls", wallets(0, []int64{1000, 960, 960}), 0, 0, 0},
		{"moves between two calls of a poll", wallets(10, times10(1000), times10(990)), 0, 0, 0},
	} {
		amount, from, to := c.polls.lost()
		if amount == nil {
			amount = new(big.Int)
		}
		if amount.Int64() != c.amount || from.start != 600*c.from || to.start != 600*c.to {
			t.Errorf("%s: %d from %v to %v", c.name, amount, from.start, to.start)
		}
	}
}

func TestCounters(t *testing.T) {
	for _, c := range []struct {
		values   []float64
		from, to float64
		fell     bool
	}{
		{[]float64{1, 2, 3, 3, 4, 5, 6, 7}, 0, 0, false},
		{[]float64{100, 200, 50, 60, 70, 80, 90}, 1, 2, true},
		{[]float64{100, 200, 50, 210, 220, 230, 240, 250}, 0, 0, false}, // one poll saw less
		{[]float64{100, 200, 50, 60}, 0, 0, false},                      // too short
		{[]float64{1e6, 1e6 - 1, 1e6 - 1, 1e6 - 1, 1e6 - 1, 1e6 - 1, 1e6 - 1}, 0, 0, false},
	} {
		var s series
		for i, v := range c.values {
			s = append(s, collect.Reported{Start: float64(i), Value: v})
		}
		if from, to, fell := s.falls(); fell != c.fell || fell && (from.Start != c.from || to.Start != c.to) {
			t.Errorf("%v: fell %v from %v to %v", c.values, fell, from, to)
		}
	}
}

// line returns n points of a line with autocorrelated noise of 5 %.
func line(n int, from, to float64, seed uint64) []analysis.Point {
	r := rand.New(rand.NewPCG(seed, 1))
	var all []analysis.Point
	e := 0.0
	for i := range n {
		e = 0.5*e + 0.05*r.NormFloat64()
		all = append(all, analysis.Point{At: float64(i), Value: (from + (to-from)*float64(i)/float64(n-1)) * (1 + e)})
	}
	return all
}

// At most 1 % of steady load tests, with four series each, are reported as slowing down.
func TestSlowingDownIsSeldomFalse(t *testing.T) {
	const runs, spread = 1000, 0.5
	for name, noise := range map[string]func(*rand.Rand) func() float64{
		"normal": func(r *rand.Rand) func() float64 { return func() float64 { return spread * r.NormFloat64() } },
		"heavy-tailed": func(r *rand.Rand) func() float64 {
			return distuv.StudentsT{Sigma: spread, Nu: 3, Src: r}.Rand
		},
		"autocorrelated": func(r *rand.Rand) func() float64 {
			e := 0.0
			return func() float64 {
				e = 0.5*e + spread*math.Sqrt(0.75)*r.NormFloat64()
				return e
			}
		},
	} {
		for _, n := range []int{leastPoints, 60, 200} {
			fired := 0
			for seed := range uint64(runs) {
				r, any := rand.New(rand.NewPCG(seed, 5)), false
				for _, sign := range []float64{1, 1, 1, -1} {
					var points []analysis.Point
					for next := noise(r); len(points) < n; {
						points = append(points, analysis.Point{At: float64(len(points)), Value: math.Exp(next())})
					}
					_, _, worse := worsening(points, sign)
					any = any || worse
				}
				if any {
					fired++
				}
			}
			t.Logf("%s, %d points: %d of %d", name, n, fired, runs)
			if fired > runs/100 {
				t.Errorf("%s, %d points: %d of %d runs slow down", name, n, fired, runs)
			}
		}
	}
}

func TestSlowingDown(t *testing.T) {
	for seed := range uint64(200) {
		if _, _, worse := worsening(line(200, 1, 2, seed), 1); !worse {
			t.Errorf("seed %d: twice as slow is not seen", seed)
		}
		if _, _, worse := worsening(line(200, 2, 1, seed), -1); !worse {
			t.Errorf("seed %d: half the bandwidth is not seen", seed)
		}
		if _, _, worse := worsening(line(200, 2, 1, seed), 1); worse {
			t.Errorf("seed %d: faster passes for slower", seed)
		}
	}
	if _, _, worse := worsening(line(leastPoints-1, 1, 9, 1), 1); worse {
		t.Error("too few points suffice")
	}
}

func TestPointsStopAtGaps(t *testing.T) {
	var s series
	for i := range 1000 {
		if i < 300 || i >= 400 {
			s = append(s, collect.Reported{Start: float64(60 * i), End: float64(60*i + 2), Value: float64(120 * i)})
		}
	}
	s = slices.Delete(s, 10, 12) // two failed polls make no gap
	points := s.points(series.rate)
	none := 0
	for _, p := range points {
		if math.IsNaN(p.Value) {
			none++
		} else if math.Abs(p.Value-2) > 1e-9 || !(p.Lo < 2 && p.Hi > 2) {
			t.Errorf("%+v", p)
		}
	}
	if len(points) > mostPoints || none != 1 {
		t.Errorf("%d points, %d without a value", len(points), none)
	}
}

// TestEveryRule executes the texts of each rule on a load test that has all problems.
func TestEveryRule(t *testing.T) {
	cell := &analysis.Cell{ID: "c001", System: "siad", Plan: experiment.Cell{Upload: &experiment.Upload{}}}
	trial := &analysis.Trial{Trial: record.Trial{ID: 1, State: record.Done}, Info: cell}
	f := &analysis.Frame{View: Scenario{}.View(), Plan: &experiment.Plan{Blocks: 1}, Run: analysis.Run{Done: 1, Valid: 1},
		Trials: []*analysis.Trial{trial}, Cells: []*analysis.Cell{cell},
		Metrics: scenario.Definitions(definitions, "derived"),
		Series:  []analysis.Series{{Trial: trial, Metric: "accept_time", Over: overObjects, Points: line(100, 1, 3, 1)}},
		Spans: []analysis.Span{{Trial: trial, Kind: moneyMissing, From: 600, To: 1200, Note: "40 SC"},
			{Trial: trial, Kind: endedMark, Note: "storage_full: no contract is good for uploads"}}}
	for k, v := range map[key]float64{{"files", ""}: 100, {"missing", ""}: 1, {"failed", ""}: 2,
		{"not_durable", ""}:  3,
		{"stored_bytes", ""}: 1e6, {"polls", ""}: 10, {"polls_missed", ""}: 5, {"money", unnamed}: 30,
		{"money_used", ""}: 100} {
		f.Rows = append(f.Rows, analysis.Row{Trial: trial, Metric: k.metric, Entity: k.entity, Value: v})
	}
	r, err := analysis.Analyse(f)
	must(t, err)
	for _, rule := range f.View.Rules {
		want := map[string]int{"money-unexplained": 2, "objects-lost": 2}[rule.ID]
		if n := len(rule.Holds(r)); n != max(1, want) {
			t.Errorf("%s: %d cases", rule.ID, n)
		}
	}
	for _, f := range r.Findings {
		if text := f.Title + f.Advice + strings.Join(f.Evidence, " "); strings.Contains(text, "template:") ||
			strings.Contains(text, "<") || len(f.Evidence) == 0 {
			t.Errorf("%s: %s", f.Rule, text)
		}
	}
	if !strings.Contains(r.Verdict.Text, "ended by storage_full") || r.Verdict.Tone != analysis.Bad {
		t.Errorf("%+v", r.Verdict)
	}
}

// Most objects never become durable: so is the time until half are.
func TestDurableTimesCountObjectsThatNeverAre(t *testing.T) {
	for durable, want := range map[int]float64{100: 2, 60: 2, 20: math.NaN()} {
		var jobs []record.Job
		for i := range 100 {
			began := time.Duration(i+1) * time.Second
			j := record.Job{Object: int64(i), State: record.JobAccepted, Attempts: 1, Size: 1000, Began: began,
				Accepted: began + 100*time.Millisecond}
			if i < durable {
				j.State, j.Durable = record.JobDurable, began+2*time.Second
			}
			jobs = append(jobs, j)
		}
		m := Scenario{}.Measure(scenario.Measured{Cell: experiment.Cell{Upload: &experiment.Upload{}},
			Jobs: slices.Values(jobs), Ops: slices.Values([]record.Op{}), Polls: slices.Values([]record.Poll{}),
			Events: slices.Values([]record.Event{}), Load: scenario.Load{Details: []record.Detail{
				scenario.Fact(scenario.LoadSettles, 1), scenario.Fact(scenario.LoadObjects, 100)}}})
		if got, has := m["durable_p50"]; has == math.IsNaN(want) || has && math.Abs(got-want) > 0.002*want {
			t.Errorf("%d of 100 are durable: median %v (%t), want %v", durable, got, has, want)
		}
		trial := &analysis.Trial{Trial: record.Trial{Metrics: m}}
		if censored := (Scenario{}).View().Censors(trial, "durable_p50", false); censored != (durable < 100) {
			t.Errorf("%d of 100 are durable: censored %t", durable, censored)
		}
	}
}
