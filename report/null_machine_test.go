package report

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// What the machine does in null runs: it is used up to any share that is not yet too
// much, processes hold what they need, and answers come at their own intervals.

// below is anywhere up to a threshold, with no room left to it.
func (n *nullNoise) below(threshold float64) float64 { return threshold * n.rng.Float64() }

// nullLoads are shares of the machine in one cell, the same in all its trials but for
// noise.
type nullLoads struct{ busiest, box, storage, harness, emulator float64 }

// The thresholds are those of the rules, which the catalogue tells. Who measures is an
// alarm that must err to the loud side: of one at its limit it may speak, of one that is
// clear of it not.
func (n *nullNoise) loads() nullLoads {
	l := nullLoads{busiest: n.below(0.9), box: n.below(0.85), storage: n.below(0.5), harness: n.below(0.7 * 0.05), emulator: n.below(0.7 * 0.5)}
	if n.rng.IntN(2) == 0 {
		l.busiest = n.between(1.1, 4) // more than one thread
	}
	return l
}

// of writes a trial's figures, those of what measures only where they are told, and
// gives how many CPUs the busiest process keeps busy.
func (l nullLoads) of(n *nullNoise, m map[string]float64) (busiest float64) {
	const sd = 0.1
	m["box_cpu"], m["io_pressure"] = min(1, l.box*n.by(sd)), min(1, l.storage*n.by(sd))
	if _, ok := m["harness_cpu"]; ok {
		m["harness_cpu"], m["emulator_cpu"] = l.harness*n.by(sd), l.emulator*n.by(sd)
	}
	return l.busiest * n.by(sd)
}

// each draws the loads of every cell.
func (n *nullNoise) each(in *input) map[string]nullLoads {
	all := map[string]nullLoads{}
	for i := range in.plan.Cells {
		all[in.plan.Cells[i].ID] = n.loads()
	}
	return all
}

// intervals are times between answers, in seconds: of one length with more or less
// noise, or without memory.
func (n *nullNoise) intervals() func() float64 {
	usual, sd := n.between(0.05, 5), n.between(0.1, 1)
	if n.rng.IntN(3) == 0 {
		return func() float64 { return usual * n.rng.ExpFloat64() }
	}
	return func() float64 { return usual * n.by(sd) }
}

// answer fills the windows of all trials: in each cell something comes at intervals
// of its own.
func (n *nullNoise) answer(in *input) {
	of, windows := map[string]func() float64{}, map[int64][]record.Window{}
	for i := range in.trials {
		t := &in.trials[i]
		if of[t.Cell] == nil {
			of[t.Cell] = n.intervals()
		}
		var all []record.Window
		for at := of[t.Cell](); at < t.Seconds; at += of[t.Cell]() {
			second := int64(at)
			if len(all) == 0 || all[len(all)-1].Second != second {
				all = append(all, record.Window{Second: second})
			}
			all[len(all)-1].Bytes += 1 << 20
		}
		windows[t.ID] = all
	}
	in.windows = streamed(windows)
}

// filled is how much a process has after a share of its life that keeps a cache, which
// grows as long as that fills.
func (n *nullNoise) filled() func(share float64) float64 {
	level, tau, full := n.between(0.002, 0.05), n.between(0.02, 0.7), n.between(0.05, 2)
	return func(share float64) float64 { return (1 + full*(1-math.Exp(-share/tau))) * n.by(level) }
}

// held is how much another has, around 1, whatever its kind: none of them grows.
func (n *nullNoise) held() func(share float64) float64 {
	walk, level := 0.0, n.between(0.002, 0.05)
	switch n.rng.IntN(4) {
	case 0: // noise that forgets
		keep := n.below(0.95)
		return func(float64) float64 {
			walk = keep*walk + level*n.rng.NormFloat64()
			return 1 + walk
		}
	case 1: // and that does not
		return func(float64) float64 {
			walk += level / 3 * n.rng.NormFloat64()
			return math.Exp(walk)
		}
	case 2: // a collector of garbage
		period, phase, height := n.between(0.01, 0.5), n.rng.Float64(), n.between(0.05, 1)
		return func(share float64) float64 {
			return (1 + height*math.Mod(share/period+phase, 1)) * n.by(level/10)
		}
	default: // one that came to hold more, once
		when, more := n.rng.Float64(), n.between(0.05, 1)
		return func(share float64) float64 {
			if share > when {
				return (1 + more) * n.by(level)
			}
			return n.by(level)
		}
	}
}

// nullCache is what processes are called that grow.
const nullCache = "cache"

// grewIndeed are caches of which no more is claimed than that they grew.
func grewIndeed(f Finding) bool {
	return f.Rule == "grew" && !slices.ContainsFunc(f.Evidence, func(e string) bool { return !strings.Contains(e, "/"+nullCache+"-") })
}

// live fills the samples of two processes of each system, which live from the first
// trial to the last and are looked at when a trial of theirs is under way.
func (n *nullNoise) live(in *input, every time.Duration) {
	trials := slices.SortedFunc(slices.Values(in.trials), func(a, b record.Trial) int { return a.Epoch.Compare(b.Epoch) })
	first, last := trials[0], trials[len(trials)-1]
	life := last.Epoch.Sub(first.Epoch).Seconds() + last.Seconds
	system := map[string]string{}
	for i := range in.plan.Cells {
		system[in.plan.Cells[i].ID] = in.plan.Cells[i].System
	}
	type process struct {
		sample               record.Sample
		memory, files, holds func(float64) float64
	}
	processes, samples := map[string][]*process{}, map[int64][]record.Sample{}
	for _, t := range trials {
		name := system[t.Cell]
		if processes[name] == nil {
			for i := range 2 {
				kind, of := "node", n.held
				if n.rng.IntN(4) == 0 {
					kind, of = nullCache, n.filled
				}
				p := &process{memory: of(), files: of(), holds: of()}
				p.sample = record.Sample{Process: fmt.Sprintf("%s/%s-%d", name, kind, i+1), Role: "system", PID: 100 + len(processes)*2 + i, RSS: n.between(2e7, 1e9), FDs: n.between(10, 1000), Threads: n.between(4, 200)}
				processes[name] = append(processes[name], p)
			}
		}
		for _, p := range processes[name] {
			for at := time.Duration(0); at.Seconds() <= max(t.Seconds, 3*every.Seconds()); at += every {
				share := (t.Epoch.Sub(first.Epoch) + at).Seconds() / life
				s := p.sample
				s.Start, s.End = at, at+time.Millisecond
				s.RSS, s.FDs, s.Threads = s.RSS*p.memory(share), math.Round(s.FDs*p.files(share)), math.Round(s.Threads*p.holds(share))
				samples[t.ID] = append(samples[t.ID], s)
			}
		}
	}
	in.samples = streamed(samples)
}

// Each rule that looks at the machine has something to look at in null runs: when
// that is made to be too much, it speaks.
func TestNullRunsReachRulesOfTheMachine(t *testing.T) {
	t.Parallel()
	set := func(key string, v float64) func(*input) {
		return func(in *input) {
			for i := range in.trials {
				if _, ok := in.trials[i].Metrics[key]; ok {
					in.trials[i].Metrics[key] = v
				}
			}
		}
	}
	grow := func(change func(s *record.Sample, hours float64)) func(*input) {
		return func(in *input) {
			was, begun := in.samples, map[int64]time.Time{}
			for _, t := range in.trials {
				begun[t.ID] = t.Epoch
			}
			in.samples = func(trial int64) iter.Seq2[record.Sample, error] {
				return func(yield func(record.Sample, error) bool) {
					for s := range was(trial) {
						s.RSS, s.FDs, s.Threads = 1e8, 100, 20
						change(&s, begun[trial].Sub(in.trials[0].Epoch).Hours()+s.End.Hours())
						if !yield(s, nil) {
							return
						}
					}
				}
			}
		}
	}
	all := []string{"retrieve", "overhead", "upload", "disseminate", "sync"}
	bounded := []string{"retrieve", "overhead", "disseminate", "sync"}
	measured := []string{"disseminate", "sync"}
	for _, c := range []struct {
		rule  string
		in    []string
		spoil func(*input)
	}{
		{"leak-memory", all, grow(func(s *record.Sample, hours float64) { s.RSS += 1e8 * hours })},
		{"leak-files", all, grow(func(s *record.Sample, hours float64) { s.FDs += math.Floor(200 * hours) })},
		{"leak-threads", all, grow(func(s *record.Sample, hours float64) { s.Threads += math.Floor(100 * hours) })},
		{"machine-busy", bounded, set("box_cpu", 0.97)},
		{"disk-bound", bounded, set("io_pressure", 0.8)},
		{"cpu-bound", []string{"retrieve", "overhead"}, set("busiest_cpu", 1)},
		{"cpu-bound", []string{"disseminate"}, func(in *input) {
			for i := range in.trials {
				var ops []record.Op
				for op := range in.ops(in.trials[i].ID) {
					ops = append(ops, op)
				}
				nodesBusy(&in.trials[i], lastEnd(ops), 1)
			}
		}},
		{"cpu-bound", []string{"sync"}, func(in *input) {
			for _, t := range in.trials {
				t.Metrics["system_cpu"] = t.Metrics["sync_time"]
			}
		}},
		{"harness-busy", measured, set("harness_cpu", 0.2)},
		{"stalled", []string{"retrieve"}, func(in *input) {
			was, least := in.windows, int64(10)
			in.windows = func(trial int64) iter.Seq2[record.Window, error] {
				return func(yield func(record.Window, error) bool) {
					for w := range was(trial) {
						if w.Second >= least {
							w.Second += 600
						}
						if !yield(w, nil) {
							return
						}
					}
				}
			}
		}},
	} {
		for _, s := range nullScenarios(t) {
			if !slices.Contains(c.in, s.name) {
				continue
			}
			in := s.run(t, 7)
			c.spoil(in)
			if r := concluded(t, in); r.found(c.rule) == nil {
				var found []string
				for _, f := range r.Findings {
					found = append(found, f.Rule)
				}
				t.Errorf("%s: %s is not found, but %s", s.name, c.rule, strings.Join(found, ", "))
			}
		}
	}
}

// What is wrong in one cell, or one process, is found through the noise that null runs
// have, in four runs of five at least: a rule that is silent there as well would pass
// all others of these tests.
func TestTroublesAreFoundInNoise(t *testing.T) {
	t.Parallel()
	const runs, least = 8, 7
	for _, s := range nullScenarios(t) {
		if s.name != "disseminate" && s.name != "sync" {
			continue // the others have the same rules, without a harness or an emulator's figures
		}
		found := map[string]int{}
		for seed := range uint64(runs) {
			in := s.run(t, seed+1)
			n := noiseOf(seed+1, 0)
			cell, level, emulated := in.trials[0].Cell, n.between(0.08, 0.4), n.between(0.6, 0.9)
			for _, trial := range in.trials {
				if trial.Cell == cell {
					trial.Metrics["harness_cpu"], trial.Metrics["emulator_cpu"] = level*n.by(0.3), min(1, emulated*n.by(0.1))
				}
			}
			process := n.leaks(in)
			r := concluded(t, in)
			if f := r.found("harness-busy"); f != nil && len(f.Evidence) == 1 && strings.Contains(f.Evidence[0], "plimsoll ") && strings.Contains(f.Evidence[0], "the emulator ") {
				found["what measures"]++
			}
			for _, rule := range []string{"leak-memory", "grew"} {
				if f := r.found(rule); f != nil && strings.Contains(strings.Join(f.Evidence, "\n"), process+": resident memory") {
					found["a leak"]++
				}
			}
		}
		for _, trouble := range []string{"what measures", "a leak"} {
			if found[trouble] < least {
				t.Errorf("%s: %s is found in %d of %d runs", s.name, trouble, found[trouble], runs)
			}
		}
	}
}

// leaks makes the first process of a run hold half as much again at the end, through
// noise, and names it.
func (n *nullNoise) leaks(in *input) (process string) {
	first, last := in.trials[0], in.trials[len(in.trials)-1]
	life, begun := last.Epoch.Sub(first.Epoch).Seconds()+last.Seconds, map[int64]float64{}
	for _, t := range in.trials {
		begun[t.ID] = t.Epoch.Sub(first.Epoch).Seconds()
	}
	for s := range in.samples(first.ID) {
		process = s.Process
		break
	}
	was := in.samples
	in.samples = func(trial int64) iter.Seq2[record.Sample, error] {
		return func(yield func(record.Sample, error) bool) {
			for s := range was(trial) {
				if s.Process == process {
					s.RSS = 1e8 * (1 + 0.5*(begun[trial]+s.End.Seconds())/life) * n.by(0.03)
				}
				if !yield(s, nil) {
					return
				}
			}
		}
	}
	return process
}
