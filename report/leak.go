package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
)

// samplesOfLife is how many samples of a process are kept; when there are twice as
// many, neighbours are put together.
const samplesOfLife = 2048

// life gathers the samples of one process over all trials in which it lived.
type life struct {
	findings.Life
	trial *Trial // the first
	kept  int    // samples that one entry stands for
	fresh int    // samples in the last entry
}

func (l *life) add(hours float64, s *record.Sample) {
	if l.fresh == 0 || l.fresh == l.kept {
		if len(l.Hours) == 2*samplesOfLife {
			for _, xs := range l.all() {
				for i := range samplesOfLife {
					(*xs)[i] = ((*xs)[2*i] + (*xs)[2*i+1]) / 2
				}
				*xs = (*xs)[:samplesOfLife]
			}
			l.kept *= 2
		}
		l.Hours, l.Memory, l.Files, l.Thread = append(l.Hours, hours), append(l.Memory, s.RSS), append(l.Files, s.FDs), append(l.Thread, s.Threads)
		l.fresh = 1
		return
	}
	l.fresh++
	for i, v := range []float64{hours, s.RSS, s.FDs, s.Threads} {
		last := &(*l.all()[i])[len(l.Hours)-1]
		*last += (v - *last) / float64(l.fresh)
	}
}

func (l *life) all() [4]*[]float64 {
	return [4]*[]float64{&l.Hours, &l.Memory, &l.Files, &l.Thread}
}

// leastRun is the time, in seconds, that a run must span before its samples are
// read: what lives for less is not looked at for leaks.
const leastRun = 600

// live gathers the lives of the systems' processes. Trials that are not valid count:
// a process does not forget them.
func (r *Report) live(in *input) {
	if in.samples == nil {
		return
	}
	var trials []*Trial
	for i := range r.Trials {
		if t := &r.Trials[i]; t.Info != nil && t.State != record.Pending && t.State != record.Skipped {
			trials = append(trials, t)
		}
	}
	slices.SortStableFunc(trials, func(a, b *Trial) int { return a.Epoch.Compare(b.Epoch) })
	if len(trials) == 0 {
		return
	}
	first, last := trials[0], trials[len(trials)-1]
	if last.Epoch.Sub(first.Epoch).Seconds()+last.Seconds < leastRun && last.State != record.Running {
		return
	}
	if in.glance && r.Run.State == "running" {
		r.Notes = append(r.Notes, "While the run goes on this page does not look for leaks of memory, files and threads, which takes reading every sample of every process: it does when the run has ended, and `plimsoll report DIR` does at any time.")
		return
	}
	type key struct {
		process string
		pid     int
	}
	all := map[key]*life{}
	var order []key
	for _, t := range trials {
		seen := map[key]bool{}
		for s, err := range in.samples(t.ID) {
			if err != nil {
				in.err = err
				return
			}
			if s.Role != "system" {
				continue
			}
			k := key{s.Process, s.PID}
			l := all[k]
			if l == nil {
				name := s.Process
				if !strings.HasPrefix(name, t.Info.System) {
					name = t.Info.System + ", " + name
				}
				l = &life{Life: findings.Life{Name: name, Thing: r.lens.operation[0]}, trial: t, kept: 1}
				all[k], order = l, append(order, k)
			}
			if !seen[k] {
				seen[k] = true
				l.Things += r.handled(t)
			}
			l.add((t.Epoch.Sub(first.Epoch) + s.End).Hours(), &s)
		}
	}
	slices.SortFunc(order, func(a, b key) int {
		return cmp.Or(strings.Compare(a.process, b.process), cmp.Compare(a.pid, b.pid))
	})
	for _, k := range order {
		l := all[k]
		for i := range r.Loads {
			if load := &r.Loads[i]; load.Trial == l.trial.ID && len(load.shelf.accepted) > 0 {
				began := l.trial.Epoch.Sub(first.Epoch).Hours()
				before, _ := load.shelf.by((l.Hours[0] - began) * 3600)
				after, _ := load.shelf.by((l.Hours[len(l.Hours)-1] - began) * 3600)
				l.Things, l.Thing = float64(after-before), "object"
			}
		}
		r.lives = append(r.lives, l.Life)
	}
}

// handled is how many operations of a trial came to an end.
func (r *Report) handled(t *Trial) float64 {
	sum := int64(0)
	for outcome, n := range t.Outcomes {
		if outcome != record.InFlight.String() {
			sum += n
		}
	}
	return float64(sum)
}

// leaking: what processes hold more and more of.
func leaking(r *Report) []Finding { return findings.Leak(r.lives) }
