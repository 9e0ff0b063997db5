package engine

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// byMachine is the CPU used by others on machines, by sample name.
type byMachine map[string]othersUsed

// othersUsed sums the CPU used by others on a machine over the sessions of a trial,
// without the time between them.
type othersUsed struct {
	cpu  float64       // CPU seconds
	wall time.Duration // in which they were used
}

// leastWindow is the shortest window for which the machine's CPU usage is known well
// enough: the kernel counts it in ticks of 10 ms.
const leastWindow = time.Second

// add adds the usage between two polls.
func (b byMachine) add(first, last record.Sample) {
	if wall := last.End - first.End; wall > 0 && !math.IsNaN(last.CPU-first.CPU) {
		sum := b[last.Process]
		b[last.Process] = othersUsed{sum.cpu + last.CPU - first.CPU, sum.wall + wall}
	}
}

// share returns the share of the machine's CPUs; NaN if unknown.
func (o othersUsed) share(cpus int) float64 {
	if o.wall < leastWindow || cpus == 0 {
		return math.NaN()
	}
	return min(1, o.cpu/o.wall.Seconds()/float64(cpus))
}

// worst returns the largest share of a machine's CPUs used by others, and that machine; NaN
// if no share is known.
func (b byMachine) worst(machines []testbed.Machine) (share float64, worst testbed.Machine) {
	share = math.NaN()
	for _, m := range machines {
		if of := b[testbed.OfMachine(testbed.OthersSample, m)].share(m.CPUs()); !(of <= share) && !math.IsNaN(of) {
			share, worst = of, m
		}
	}
	return share, worst
}

// counted is the CPU that others had used since the beginning of the session, at some time.
type counted struct {
	at  time.Time
	cpu float64 // seconds
}

// longestWindow limits how far a window extends before the end of a short trial.
const longestWindow = 10 * time.Second

// recentOthers are the counts at the beginning and end of the latest trials of a session, by
// sample name.
type recentOthers map[string][]counted

// add adds the edges of a trial that began at epoch, and removes counts that are too old.
func (r recentOthers) add(epoch time.Time, edges ...record.Sample) {
	for _, s := range edges {
		if s.Process == "" || math.IsNaN(s.CPU) {
			continue
		}
		now := counted{epoch.Add(s.End), s.CPU}
		r[s.Process] = append(slices.DeleteFunc(r[s.Process], func(c counted) bool {
			return now.at.Sub(c.at) > longestWindow
		}), now)
	}
}

// window returns what others used in the shortest sufficiently long window that ends with the
// last trial. Trials shorter than that are judged by it.
func (r recentOthers) window() byMachine {
	all := byMachine{}
	for name, counts := range r {
		last := counts[len(counts)-1]
		for _, c := range slices.Backward(counts) {
			w := othersUsed{last.cpu - c.cpu, last.at.Sub(c.at)}
			if w.cpu < 0 { // another machine has replaced it
				break
			}
			if w.wall >= leastWindow {
				all[name] = w
				break
			}
		}
	}
	return all
}

// recordedOthers returns what others used in the earlier sessions of a trial, from its
// recorded samples. The counters of others start at 0 in each session, which has another
// process of ours.
func recordedOthers(samples iter.Seq2[record.Sample, error]) (sum byMachine, err error) {
	sum = byMachine{}
	var polled []record.Sample
	last, pid := map[string]record.Sample{}, 0 // of the current session
	for s, err := range samples {
		if err != nil {
			return sum, err
		}
		switch kind, _, _ := strings.Cut(s.Process, "@"); {
		case kind == testbed.OthersSample && !math.IsNaN(s.CPU):
			polled = append(polled, s)
		case s.Process == testbed.SelfSample && len(polled) > 0: // it comes last in a poll
			fell := func(now record.Sample) bool {
				return now.Process == testbed.OthersSample && now.CPU < last[now.Process].CPU
			}
			if s.PID != pid || slices.ContainsFunc(polled, fell) {
				clear(last)
			}
			for _, now := range polled {
				if before, begun := last[now.Process]; begun {
					sum.add(before, now)
				}
				last[now.Process] = now
			}
			polled, pid = polled[:0], s.PID
		}
	}
	return sum, nil
}

// Busy checks how much of this machine's CPU others use, by the same measure and limit that
// later decide whether a trial is valid. Empty: trials can be valid.
func Busy(ctx context.Context, cfg Config) []Problem {
	e := cfg.Plan.Experiment
	limit := float64(e.Limits.Others)
	// Polls of a system are not affected by a busy machine.
	if limit <= 0 || e.Collect != nil || slices.Contains(e.Skip, "machine") || slices.Contains(e.Skip, busyName) {
		return nil
	}
	what := testbed.Busy(ctx, limit)
	if what == "" {
		return nil
	}
	return []Problem{{
		Name: busyName, What: fmt.Sprintf("%s; with more than %.0f %% (limits.others) a trial is invalid", what,
			100*limit),
		Hint: "wait until it is quiet, or end the other programs",
	}}
}

const busyName = "busy"

// awaitQuiet waits up to Config.WaitQuiet until the machine is quiet, and then continues in any
// case: trials on a busy machine are marked as invalid.
func (r *run) awaitQuiet(ctx context.Context) error {
	begun := time.Now()
	for said := false; ; said = true {
		switch busy := Busy(ctx, r.cfg); {
		case ctx.Err() != nil || len(busy) == 0:
			return ctx.Err()
		case time.Since(begun) >= r.cfg.WaitQuiet:
			r.say.Note(busy[0].What + "; continuing anyway")
			return nil
		case !said:
			r.say.Note(fmt.Sprintf("%s; waiting up to %s for quiet", busy[0].What, r.cfg.WaitQuiet))
		}
	}
}
