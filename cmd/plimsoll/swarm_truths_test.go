package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/deluge"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// needLinks skips where links cannot be emulated.
func needLinks(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	bed, err := testbed.New(t.Context(), testbed.Options{Dir: t.TempDir()})
	check(t, err)
	mode := bed.Mode()
	check(t, bed.Close(t.Context()))
	if mode.Emulator == "none" {
		t.Skip("links are not emulated here: ", mode.Why)
	}
}

// swarmSystems runs a test with the swarms that need no program, and with deluge,
// where it is there.
func swarmSystems(t *testing.T, test func(t *testing.T, systems ...string)) {
	needLinks(t)
	t.Run("embedded", func(t *testing.T) { test(t, "bittorrent", "boxo", "fanout") })
	t.Run("deluge", func(t *testing.T) {
		systemtest.Need(t, "deluge", system.Check(t.Context(), deluge.System{}, nil))
		test(t, "deluge")
	})
}

// swarmRun is a run of scenario disseminate that has ended, as its directory tells.
type swarmRun struct {
	t      *testing.T
	dir    string
	plan   *experiment.Plan
	rec    *record.Reader
	trials []swarmTrial
	report *analysis.Result
}

// swarmTrial is a trial with its cell and its leechers' fetches.
type swarmTrial struct {
	record.Trial
	cell    experiment.Cell
	fetches []record.Op
	events  []record.Event
}

// runSwarm executes an experiment to its end.
func runSwarm(t *testing.T, yaml string) *swarmRun {
	t.Helper()
	s := startRun(t, yaml)
	if code := s.end(); code != ui.CodeOK && code != ui.CodeInvalid && code != ui.CodeCorruption {
		t.Fatalf("plimsoll ended with status %d:\n%s", code, s.output())
	}
	return readSwarm(t, s.dir)
}

// readSwarm reads the directory of a run that has ended.
func readSwarm(t *testing.T, dir string) *swarmRun {
	t.Helper()
	rec, err := record.Open(dir)
	check(t, err)
	t.Cleanup(func() { rec.Close() })
	s := &swarmRun{t: t, dir: dir, rec: rec}
	if s.plan, err = experiment.LoadPlan(rec.Plan()); err != nil {
		t.Fatal(err)
	}
	if s.report, err = report.Build(rec); err != nil {
		t.Fatal(err)
	}
	trials, err := rec.Trials()
	check(t, err)
	events, err := rec.Events()
	check(t, err)
	for _, trial := range trials {
		st := swarmTrial{Trial: trial}
		for _, c := range s.plan.Cells {
			if c.ID == trial.Cell {
				st.cell = c
			}
		}
		if trial.State != record.Done {
			if trial.State == record.Failed {
				t.Errorf("%s failed: %s", st.name(), trial.Error)
			}
			continue
		}
		for _, e := range events {
			if e.Trial == trial.ID {
				st.events = append(st.events, e)
			}
		}
		for op, err := range rec.Ops(trial.ID) {
			check(t, err)
			if op.Kind == record.OpFetch {
				st.fetches = append(st.fetches, op)
			}
		}
		if want := st.cell.Disseminate.Leechers(); len(st.fetches) != want {
			t.Errorf("%s: %d leechers, want %d", st.name(), len(st.fetches), want)
		}
		if len(trial.Invalid) > 0 {
			t.Logf("%s is invalid: %v %q", st.name(), trial.Invalid, trial.Notes)
		}
		s.trials = append(s.trials, st)
	}
	return s
}

func (s *swarmTrial) name() string {
	var factors []string
	for _, f := range s.cell.Factors {
		factors = append(factors, f.Value)
	}
	return fmt.Sprintf("block %d, %s", s.Block, strings.Join(factors, ", "))
}

// ok is how many leechers have the content.
func (s *swarmTrial) ok() (n int) {
	for _, f := range s.fetches {
		if f.Outcome == record.OK {
			n++
		}
	}
	return n
}

// of are the trials that a condition holds for.
func (s *swarmRun) of(which func(experiment.Cell) bool) (some []swarmTrial) {
	s.t.Helper()
	for _, trial := range s.trials {
		if which(trial.cell) {
			some = append(some, trial)
		}
	}
	if len(some) == 0 {
		s.t.Fatal("no trial was executed")
	}
	return some
}

// values are those of a metric.
func values(trials []swarmTrial, key string) (all []float64) {
	for _, trial := range trials {
		if v, ok := trial.Metrics[key]; ok {
			all = append(all, v)
		}
	}
	return all
}

// finding is the evidence of one of the report's findings; nil: it is not there.
func (s *swarmRun) finding(rule string) []string {
	for _, f := range s.report.Findings {
		if f.Rule == rule {
			return f.Evidence
		}
	}
	return nil
}

const lineExperiment = `
scenario: disseminate
systems: [%s]
data: {size: 2MiB}
link: {rate: [10Mbit, 20Mbit], delay: 5ms, queue: 1MiB}
disseminate: {nodes: 2}
where: ["%s"]
repetitions: 2
warmup: 0
limits: {others: none, machine: none, stall: 20s, deadline: 1m, start: 30s}
skip: [machine]
`

// From one seeder to one leecher everything comes close to the load line, and
// nothing below it; twice the rate takes half the time. Times are ratios of such with
// each other or with what the links need, and those of the best of a few trials where
// others may delay them.
func TestSwarmTimesAreTheLinks(t *testing.T) {
	swarmSystems(t, func(t *testing.T, systems ...string) {
		where := "link.rate == 20Mbit"
		if slices.Contains(systems, "fanout") {
			systems = []string{"bittorrent", "fanout"}
			where += " || system == bittorrent"
		}
		s := runSwarm(t, fmt.Sprintf(lineExperiment, strings.Join(systems, ", "), where))
		for i := range s.trials {
			trial := &s.trials[i]
			m := trial.Metrics
			t.Logf("%s: last %.3f s, line %.3f s, resolution %.0f ms, overhead %.3f, start spread %.1f ms",
				trial.name(), m["time_last"], m["line"], 1e3*m["resolution"], m["overhead"], 1e3*m["start_spread"])
			if trial.ok() != len(trial.fetches) {
				t.Errorf("%s: outcomes %v %v", trial.name(), trial.Outcomes, trial.Classes)
				continue
			}
			// The line is by the link as measured, which may be off by its tolerance; 1 % is
			// what a bucket lets through at once.
			line := m["line"]
			if !(line > 0) || m["time_last"] < 0.94*line {
				t.Errorf("%s: the last leecher took %v s, the load line is %v s", trial.name(), m["time_last"], line)
			}
			trial.wantBytes(t)
		}
		if found := s.finding("beyond-line"); found != nil {
			t.Errorf("faster than the links: %q", found)
		}
		for _, sys := range systems {
			at := func(rate float64) []swarmTrial {
				return s.of(func(c experiment.Cell) bool { return c.System == sys && float64(c.Link.Rate) == rate })
			}
			if sys == "bittorrent" { // others have pauses that are times of their own
				quick, slow := at(20e6), at(10e6)
				// As in the test of the load line in system/bittorrent: five round trips
				// of a beginning are no part of the line.
				const rtt = 2 * 0.005
				best := slices.Min(values(slow, "time_last"))
				within := slow[0].Metrics["line"] + 5*rtt
				t.Logf("%s: at best %.3f of the load line and five round trips", sys, best/within)
				if best > 1.1*within {
					t.Errorf("%s takes %v s at best, the load line and five round trips are %v s", sys, best, within)
				}
				lo, hi := ratios(values(slow, "time_median"), values(quick, "time_median"))
				t.Logf("%s: half the rate takes %.2f to %.2f of the time", sys, lo, hi)
				// What begins a fetch is shortened by no rate.
				if lo > 2.1 || hi < 1.8 {
					t.Errorf("%s: half the rate takes %.2f to %.2f times as long, and not twice", sys, lo, hi)
				}
			}
		}
	})
}

// ratios are the least and the largest that two sets of times can have: their
// interval is that of the samples, which are too few for any other.
func ratios(a, b []float64) (lo, hi float64) {
	return slices.Min(a) / slices.Max(b), slices.Max(a) / slices.Min(b)
}

// wantBytes checks that what the leechers have has crossed their links, and the
// seeders' links.
func (s *swarmTrial) wantBytes(t *testing.T) {
	t.Helper()
	var seeders, received, sent float64
	nodes := s.cell.Disseminate.Nodes
	all := map[string][]float64{}
	for _, d := range s.Details {
		all[d.Kind] = append(all[d.Kind], d.Value)
	}
	for _, kind := range []string{record.DetailSeeder, record.DetailLinkReceived, record.DetailLinkSent} {
		if len(all[kind]) < nodes {
			t.Errorf("%s: %d details of kind %s for %d nodes", s.name(), len(all[kind]), kind, nodes)
			return
		}
	}
	for i := range nodes {
		if all[record.DetailSeeder][i] == 1 {
			seeders++
			sent += all[record.DetailLinkSent][i]
		} else {
			received += all[record.DetailLinkReceived][i]
		}
	}
	size := float64(s.cell.Data.Size)
	if want := size * float64(len(s.fetches)); received < want ||
		math.Abs(received/want-s.Metrics["overhead"]) > 0.001 {
		t.Errorf("%s: %g bytes came to the leechers, whose content is %g; overhead is said to be %v", s.name(),
			received, want, s.Metrics["overhead"])
	}
	if seeders != float64(s.cell.Disseminate.Seeders) || sent < size {
		t.Errorf("%s: %g seeders sent %g bytes of a content of %g", s.name(), seeders, sent, size)
	}
	// Headers are 4 % of full packets, and less where several are counted as one.
	if o := s.Metrics["overhead"]; o < 1.005 || o > 1.3 || s.cell.System == "fanout" && o > 1.1 {
		t.Errorf("%s: %v bytes crossed the leechers' links for each byte of content", s.name(), o)
	}
}

const joinExperiment = `
scenario: disseminate
systems: [fanout, bittorrent]
data: {size: 256KiB}
link: {rate: 20Mbit, delay: 1ms, queue: 1MiB}
disseminate: {nodes: 6, join: [{wave: 2, every: 700ms}, {poisson: 4/s}]}
repetitions: 2
warmup: 0
limits: {others: none, machine: none, stall: 20s, deadline: 1m, start: 30s}
skip: [machine]
`

// Leechers come when the experiment says, the same for all systems, and their
// times count from then.
func TestSwarmJoins(t *testing.T) {
	needLinks(t)
	t.Parallel()
	s := runSwarm(t, joinExperiment)
	came := map[string][]time.Duration{} // by join and block
	for i := range s.trials {
		trial := &s.trials[i]
		if trial.ok() != len(trial.fetches) {
			t.Errorf("%s: outcomes %v %v", trial.name(), trial.Outcomes, trial.Classes)
		}
		slices.SortFunc(trial.fetches, func(a, b record.Op) int { return int(a.Intended - b.Intended) })
		var at []time.Duration
		var took []float64
		for k, f := range trial.fetches {
			at = append(at, time.Duration(f.Intended-trial.fetches[0].Intended))
			took = append(took, float64(f.LastByte-f.Intended)/1e9)
			if f.Start < f.Intended || f.LastByte <= f.Start {
				t.Errorf("%s: leecher %d was to begin at %d ns, began at %d and ended at %d", trial.name(), k,
					f.Intended, f.Start, f.LastByte)
			}
		}
		m := trial.Metrics
		t.Logf("%s: came after %v, took %.3f; last %.3f, median %.3f, spread %.4f", trial.name(), at, took,
			m["time_last"], m["time_median"], m["start_spread"])
		if last := slices.Max(took); math.Abs(m["time_last"]-last) > 1e-6 || m["time_median"] < slices.Min(took) ||
			m["time_median"] > last {
			t.Errorf("%s: leechers took %v from their own release, and the metrics are last %v, median %v",
				trial.name(), took, m["time_last"], m["time_median"])
		}
		if _, has := m["line"]; has {
			t.Errorf("%s has a load line, and its leechers do not begin together", trial.name())
		}
		if trial.cell.Disseminate.Join.Wave > 0 {
			for k, a := range at {
				if want := time.Duration(k/2) * 700 * time.Millisecond; a != want {
					t.Errorf("%s: leecher %d came after %v, want %v", trial.name(), k, a, want)
				}
			}
		} else if gap := at[len(at)-1] / time.Duration(len(at)-1); slices.ContainsFunc(at[1:],
			func(a time.Duration) bool { return a <= 0 }) || gap < 20*time.Millisecond || gap > 2*time.Second {
			t.Errorf("%s: leechers came after %v", trial.name(), at)
		}
		key := fmt.Sprintf("%v in block %d", trial.cell.Disseminate.Join, trial.Block)
		if before, ok := came[key]; ok && !slices.Equal(before, at) {
			t.Errorf("%s: leechers came after %v, those of another system after %v", trial.name(), at, before)
		}
		came[key] = at
	}
	if len(came) != 4 || slices.Equal(came["poisson 4/s in block 0"], came["poisson 4/s in block 1"]) {
		t.Errorf("leechers came after %v", came)
	}
	if found := s.finding("start-spread"); found != nil {
		t.Errorf("the report takes waves for a spread: %q", found)
	}
}
