package report

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siad"
	"github.com/plimsoll-project/plimsoll/system/siasim"
)

// kept is a journal in memory: a database does not live in virtual time.
type kept struct {
	mu     sync.Mutex
	jobs   map[int64]record.Job
	polls  []record.Poll
	events []record.Event
}

func nothingYet[T any](func(T, error) bool) {}

func (k *kept) Earlier() iter.Seq2[record.Job, error]         { return nothingYet[record.Job] }
func (k *kept) EarlierOps() iter.Seq2[record.Op, error]       { return nothingYet[record.Op] }
func (k *kept) EarlierPolls() iter.Seq2[record.Poll, error]   { return nothingYet[record.Poll] }
func (k *kept) EarlierEvents() iter.Seq2[record.Event, error] { return nothingYet[record.Event] }

func (k *kept) Jobs(jobs ...record.Job) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, j := range jobs {
		k.jobs[j.Object] = j
	}
	return nil
}

func (k *kept) Poll(p record.Poll) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.polls = append(k.polls, p)
	return nil
}

func (k *kept) Event(e record.Event) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = append(k.events, e)
	return nil
}

const (
	simDay      = 2 * time.Hour // what takes a system a day, scaled
	simDays     = 5
	simPassword = "PLIMSOLL_TEST_SIM"
)

const simFile = `
scenario: upload
title: Simulated load
question: What does a load test of a known siad tell?
systems: [{use: siad, mode: attach}]
data: {%s, objects: %d}
upload: {concurrency: 5, slot: %s, poll: 3m, settle: 2h, retries: 2, price: "0.014 USD (2018-06-01)"}
allow: [write, spend]
`

// simTest is a load test against a siad of which all is known.
type simTest struct {
	objects int
	size    string        // of each; empty: 1 B
	mix     string        // of sizes, in its place
	slot    string        // empty: accepted
	stop    time.Duration // an exit condition ends it then; 0: none does
}

func simulated(t *testing.T, objects int, c siasim.Config) (*Report, siasim.Truth) {
	t.Helper()
	return simTest{objects: objects}.report(t, c)
}

// report is that of a load test: the scenario runs in virtual time, what it
// records goes to a run directory, and the report is made of that.
func (s simTest) report(t *testing.T, c siasim.Config) (*Report, siasim.Truth) {
	t.Helper()
	data := "size: " + cmp.Or(s.size, "1B")
	if s.mix != "" {
		data = fmt.Sprintf("mix: %q", s.mix)
	}
	e, err := experiment.Parse("sim.yaml", fmt.Appendf(nil, simFile, data, s.objects, cmp.Or(s.slot, "accepted")), nil, experiment.Catalog{{Name: "siad", Modes: []string{"start", "attach"}, Summary: "renter"}})
	must(t, err)
	plan, err := e.Plan()
	must(t, err)
	t.Setenv(simPassword, siasim.Defaults().Password)
	const each = 30 * 4 << 20
	if c.Up.Start == 0 {
		c.Up.Start = float64(s.objects) * each / (simDays * simDay).Seconds()
	}
	if o := c.Faults.Overshoot; o != nil {
		c.Up.Start *= o.Mean / 3
	}
	journal := &kept{jobs: map[int64]record.Job{}}
	var blocks [][]byte
	var load scenario.Load
	var truth siasim.Truth
	var epoch time.Time
	var took float64
	record.AppendBlock(nil, []record.Op{{}}) // its pools are made outside of virtual time
	synctest.Test(t, func(t *testing.T) {
		sim := siasim.New(c)
		defer sim.Close()
		cluster, err := siad.System{}.Attach(t.Context(), system.Deployment{Client: sim.Host(), Write: true, Options: system.Options{"url": sim.SiadURL(), "password": simPassword}})
		must(t, err)
		defer func() { must(t, cluster.Stop(context.Background())) }()
		epoch = time.Now()
		cell := plan.Cells[0]
		limits := experiment.Limits{Deadline: experiment.Duration(30 * simDay), Stall: experiment.Duration(30 * simDay)}
		note := func(kind, what, detail string, _ time.Duration) {
			must(t, journal.Event(record.Event{At: time.Now(), Kind: kind, What: what, Detail: detail}))
		}
		runner, err := scenario.Upload{}.Prepare(t.Context(), scenario.Site{Use: experiment.SystemUse{Name: "siad", Use: "siad", Mode: "attach"}, Cluster: cluster, Seed: 1, Limits: limits, Run: "0123abcd", Event: note, Say: func(string) {}}, []experiment.Cell{cell})
		must(t, err)
		ended := "all done"
		ctx, cancel := context.WithTimeout(t.Context(), 3*simDays*simDay)
		if s.stop > 0 {
			stop := &scenario.Stop{Condition: "max_runtime", Why: s.stop.String() + " are over"}
			ended = stop.Condition + ": " + stop.Why
			ctx, cancel = context.WithTimeoutCause(t.Context(), s.stop, stop)
		}
		defer cancel()
		load, err = runner.Trial(ctx, cell, 42, scenario.Sink{
			Epoch: epoch, Journal: journal, Now: func() time.Duration { return time.Since(epoch) }, State: func(scenario.State) {}, Progress: func(int64, int64) {},
			Block: func(b []byte) error { blocks = append(blocks, slices.Clone(b)); return nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		took, truth = time.Since(epoch).Seconds(), sim.Truth()
		must(t, journal.Event(record.Event{At: time.Now(), Kind: "phase", What: "trial ended", Detail: ended}))
	})
	raw, err := plan.Marshal()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	meta := siadMeta
	if c.Sector > 0 {
		meta = maps.Clone(siadMeta)
		meta["systems"] = strings.Replace(meta["systems"], "4194304", strconv.FormatInt(c.Sector, 10), 1)
	}
	run, err := record.Create(dir, raw, meta, []record.Metric{{Key: "file_bandwidth", Name: "file bandwidth", Unit: "B/s", Better: record.Higher, Help: "bytes per second"}})
	must(t, err)
	w, err := run.Begin(plan.Cells[0].ID, 0, false, epoch)
	must(t, err)
	for _, b := range blocks {
		must(t, w.Block(b))
	}
	for _, p := range journal.polls {
		must(t, w.Poll(p))
	}
	must(t, w.Jobs(slices.Collect(maps.Values(journal.jobs))...))
	for _, x := range journal.events {
		x.Trial = w.ID()
		must(t, w.Event(x))
	}
	must(t, run.Flush())
	trial := record.Trial{ID: w.ID(), Seconds: took, Details: scenario.Details(load, scenario.Usage{}, nil, false), Notes: load.Notes}
	trial.Metrics, err = scenario.Recompute(scenario.Upload{}, run.Reader, trial, plan.Cells[0], w.Summary())
	must(t, err)
	must(t, w.End(trial))
	must(t, run.Close())
	return buildDir(t, dir), truth
}

// about reports whether a break lies about a moment, as closely as polls tell.
func (b *Break) about(at time.Duration) bool {
	return float64(b.From) <= at.Seconds() && float64(b.To) >= at.Seconds() && float64(b.To-b.From) <= (30*time.Minute).Seconds()
}

// Each fault of the simulated siad is found, with its amount and its moment, and
// where there is none, none is.
func TestFaultsOfASimulatedSiadAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("runs load tests of days in virtual time")
	}
	const objects = 60
	money := []string{"money-missing", "money-sum", "money-came-in", "money-under-way"}
	with := func(rules ...string) []string { return append(rules, money...) }
	// The first objects share the uplink with fewer than the later ones, so that
	// the time to store one does grow.
	quiet := slices.DeleteFunc(slices.Clone(alarms), func(rule string) bool { return rule == "slows-down" })
	base := map[string]siasim.Latency{"/renter/files": {Base: time.Second, Jitter: 0.1}}
	for _, c := range []struct {
		name   string
		faults siasim.Faults
		not    []string // rules that must not speak
		look   func(t *testing.T, r *Report, truth siasim.Truth)
	}{
		{"none", siasim.Faults{}, with(quiet...), func(t *testing.T, r *Report, truth siasim.Truth) {
			l := r.Loads[0]
			if l.Objects.Durable != objects || float64(l.Absolute) != float64(truth.Absolute) {
				t.Errorf("%+v, absolute %v; truth %+v; verdict %+v", l.Objects, l.Absolute, truth, r.Verdict)
			}
		}},
		{"money", siasim.Faults{
			FormationLeak:    &siasim.Loss{At: 2 * simDay, Amount: siasim.SC(2_033_000)},
			PrematureRenewal: &siasim.Loss{At: 3 * simDay, Amount: siasim.SC(69_300)},
			Overfund:         &siasim.Loss{At: 4 * simDay, Amount: siasim.SC(1_000_000)},
		}, []string{"money-sum", "money-came-in", "redundancy-fell", "more-than-asked"}, func(t *testing.T, r *Report, truth siasim.Truth) {
			for amount, at := range map[string]time.Duration{"-2033": 2 * simDay, "-69.3": 3 * simDay} {
				if !slices.ContainsFunc(r.Loads[0].Breaks, func(b Break) bool {
					return b.Law == "wealth" && b.Held && b.Amount.Exact == amount && b.about(at)
				}) {
					t.Errorf("%s SC after %v are not found: %+v", amount, at, r.Loads[0].Breaks)
				}
			}
			i := slices.IndexFunc(r.Loads[0].Money.Kinds, func(k Spending) bool { return k.Kind == system.ReadUnspent })
			unspent := decimal(ratOf(truth.Unspent).Quo(ratOf(truth.Unspent), ratOf(oneSC)), 24)
			if have := r.Loads[0].Money.Kinds[i].Amount.Exact; have != unspent || r.found("money-unspent") == nil {
				t.Errorf("unspent %s, truth %s: %s", have, unspent, r.evidence("money-unspent"))
			}
		}},
		{"dead host", siasim.Faults{DeadHost: &siasim.DeadHost{At: 2 * simDay, Host: 7, Fall: simDay}}, with("redundancy-repaired", "objects-missing", "more-than-asked"), func(t *testing.T, r *Report, truth siasim.Truth) {
			below := r.Loads[0].below()
			all := below.Lacks()
			if len(all) != 1 || !all[0].Open || int(all[0].Objects) != truth.Below || all[0].From < 3*simDay.Seconds() || all[0].From > (3*simDay+15*time.Minute).Seconds() || !strings.Contains(r.evidence("redundancy-fell"), "not repaired") {
				t.Errorf("below %+v, truth %d: %s", all, truth.Below, r.evidence("redundancy-fell"))
			}
		}},
		{"overshoot", siasim.Faults{Overshoot: &siasim.Overshoot{Mean: 5.3, Max: 11.3}}, with("redundancy-fell"), func(t *testing.T, r *Report, truth siasim.Truth) {
			e := r.Loads[0].Efficiency
			if e == nil || !about(e.Copies, truth.RedundancyMean, 0.02) || !about(e.HighestTold, truth.RedundancyMax, 0.01) || !strings.Contains(r.evidence("more-than-asked"), "instead of 3.00×") {
				t.Errorf("efficiency %+v, truth %v and %v: %s", e, truth.RedundancyMean, truth.RedundancyMax, r.evidence("more-than-asked"))
			}
		}},
		{"a stall", siasim.Faults{Stall: []siasim.Window{{From: 2 * simDay, For: 2 * simDay}}}, with("storage-full", "redundancy-fell", "more-than-asked"), func(t *testing.T, r *Report, truth siasim.Truth) {
			l := r.Loads[0]
			if len(l.Stalls) != 1 || !l.Stalls[0].spans(2*simDay, 4*simDay) || l.Stalls[0].Objects != 5 || l.Objects.Durable != objects {
				t.Errorf("stalls %+v, %+v", l.Stalls, l.Objects)
			}
			if e := r.evidence("stalled"); !strings.Contains(e, "from 4 h to 8 h") || !strings.Contains(e, "5 objects (5.00 B) under way") {
				t.Errorf("stalled: %q", e)
			}
		}},
		{"a daemon in trouble", siasim.Faults{
			HTML:      []siasim.Window{{From: simDay, For: simDay / 6}},
			Underflow: []siasim.Window{{From: simDay / 4, For: simDay / 4}},
		}, with("counter-fell", "redundancy-fell"), func(t *testing.T, r *Report, _ siasim.Truth) {
			if r.found("gaps") == nil || !strings.Contains(r.evidence("gaps"), "HTML") || r.found("absurd") == nil {
				t.Errorf("gaps %q, absurd %q", r.evidence("gaps"), r.evidence("absurd"))
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, truth := simulated(t, objects, siasim.Config{Faults: c.faults, LatencyOf: base})
			for _, rule := range c.not {
				if r.found(rule) != nil {
					t.Errorf("%s: %s", rule, r.evidence(rule))
				}
			}
			if r.found("stalled") != nil && c.faults.Stall == nil {
				t.Errorf("stalled: %s", r.evidence("stalled"))
			}
			c.look(t, r, truth)
		})
	}
}

// spans reports whether a stall is the one that began and ended so, as closely as
// polls tell.
func (s *Stall) spans(from, to time.Duration) bool {
	near := (15 * time.Minute).Seconds()
	return float64(s.Within) <= from.Seconds() && float64(s.From) >= from.Seconds()-near && float64(s.From) <= from.Seconds()+near &&
		float64(s.Until) >= to.Seconds() && float64(s.To) <= to.Seconds()+near && float64(s.To) >= to.Seconds()-near
}

// Servers that take nothing more are told from a network that does not move.
func TestFullStorageOfASimulatedSiadIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("runs load tests of days in virtual time")
	}
	s := simTest{objects: 60, stop: 6 * simDay}
	for _, c := range []struct {
		name   string
		faults siasim.Faults
		full   bool
	}{
		{"full", siasim.Faults{Full: []siasim.Window{{From: 3 * simDay}}}, true},
		{"stalled", siasim.Faults{Stall: []siasim.Window{{From: 3 * simDay}}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, truth := s.report(t, siasim.Config{Faults: c.faults, LatencyOf: map[string]siasim.Latency{"/renter/files": {Base: time.Second, Jitter: 0.1}}})
			l := r.Loads[0]
			if n := len(l.Stalls); n != 1 || l.Stalls[0].Until.Known() || !about(l.Stalls[0].From, (3*simDay).Seconds(), 0.03) || l.Stalls[0].To < Num((6*simDay-10*time.Minute).Seconds()) || float64(l.Absolute) != float64(truth.Absolute) {
				t.Errorf("stalls %+v; absolute %v, truth %d", l.Stalls, l.Absolute, truth.Absolute)
			}
			if e := r.evidence("storage-full"); (e != "") != c.full || c.full && !strings.Contains(e, fmt.Sprintf("with %d objects", l.Objects.Accepted)) {
				t.Errorf("storage-full: %q; stored %+v", e, l.Objects)
			}
		})
	}
}

func about(have Num, want, off float64) bool {
	return float64(have) > want*(1-off) && float64(have) < want*(1+off)
}
