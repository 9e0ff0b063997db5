package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sessions fills in how often a trial was taken up again, what died under it,
// and what ended it, from its events.
func (l *LoadTest) sessions(in *input, t *Trial) error {
	l.Sessions = 1
	paused, left, begun := false, -1.0, 0.0
	for _, e := range in.events {
		since := e.At.Sub(t.Epoch)
		at := since.Seconds()
		if e.Trial != t.ID {
			continue
		}
		switch {
		case e.Kind == "session" && e.What == "paused":
			paused, left = true, at
		case e.Kind == "session" && e.What == "continued":
			l.Sessions++
			what := "session " + count(int64(l.Sessions))
			if !paused {
				l.CutOff++
				what += "; the one before ended without a word"
			}
			if left < 0 { // killed: it ended with the last that is recorded of it
				last, err := in.latest(t.ID, since)
				if err != nil {
					return err
				}
				left = max(begun, last.Seconds())
			}
			l.Downtime += Num(max(0, at-left))
			l.away = append(l.away, [2]float64{left, max(left, at)})
			paused, left, begun = false, -1, at
			l.marks = append(l.marks, mark{at, "session", what})
		case e.Kind == "mark" && e.What == "daemon died":
			l.Crashes++
			l.marks = append(l.marks, mark{at, "fault", e.What + ": " + e.Detail})
		case e.Kind == "fault", e.Kind == "mark":
			l.marks = append(l.marks, mark{at, "fault", strings.TrimSuffix(e.What+": "+e.Detail, ": ")})
		case e.Kind == "phase" && e.What == "trial ended":
			l.Ended, l.Why, _ = strings.Cut(e.Detail, ": ")
			l.marks = append(l.marks, mark{at, "exit", e.Detail})
		case e.Kind == "phase" && strings.HasPrefix(e.What, "attribution: "):
			var n int
			var from, to time.Duration
			if _, err := fmt.Sscanf(e.Detail, "phase %d from %d to %d ns", &n, &from, &to); err == nil {
				// By the trial's clock, too; older releases did not write it.
				probed := at
				if _, last, ok := strings.Cut(e.Detail, "; probed until "); ok {
					if ns, err := strconv.ParseInt(strings.TrimSuffix(last, " ns"), 10, 64); err == nil {
						probed = time.Duration(ns).Seconds()
					}
				}
				l.phases = append(l.phases, designPhase{strings.TrimPrefix(e.What, "attribution: "), from.Seconds(), to.Seconds(), probed})
			}
		}
	}
	for i := range l.marks {
		l.marks[i].at = max(0, l.marks[i].at)
	}
	slices.SortStableFunc(l.marks, func(a, b mark) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	return nil
}

// within is by how much a bandwidth over the whole test is higher without the
// time between sessions; not known: there is none of it, or no bandwidth.
func (l *LoadTest) within() Num {
	from, to := l.storing()
	if l.info.plan.Upload == nil || math.IsInf(to, 0) {
		return unknown
	}
	away := 0.0
	for _, x := range l.away {
		away += max(0, min(x[1], to)-max(x[0], from))
	}
	if away == 0 || away >= to-from {
		return unknown
	}
	return Num((to - from) / (to - from - away))
}

// unrecorded counts the attempts that a session which was cut off has left no
// operation of. Operations that fetched something make it smaller, if anything.
func (l *LoadTest) unrecorded(t *Trial) {
	if l.CutOff == 0 {
		return
	}
	ops := int64(0)
	for _, n := range t.Outcomes {
		ops += n
	}
	l.Unrecorded = max(0, l.Objects.Attempts-l.Objects.Putting-(ops-l.Objects.Verified-l.Objects.Unverified))
}

// going reports whether the test has not come to its end.
func (l *LoadTest) going() bool { return l.State == "running" }

// session counts the sessions that had begun after the first one by a moment: no
// line is drawn from one session to the next.
func (l *LoadTest) session(at float64) (n int) {
	for _, m := range l.marks {
		if m.kind == "session" && m.at <= at {
			n++
		}
	}
	return n
}
