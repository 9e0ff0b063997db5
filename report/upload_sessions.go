package report

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// sessions fills in how often a trial was taken up again, what died under it,
// and what ended it, from its events.
func (l *LoadTest) sessions(in *input, t *Trial) {
	l.Sessions = 1
	paused := false
	for _, e := range in.events {
		at := e.At.Sub(t.Epoch).Seconds()
		if e.Trial != t.ID {
			continue
		}
		switch {
		case e.Kind == "session" && e.What == "paused":
			paused = true
		case e.Kind == "session" && e.What == "continued":
			l.Sessions++
			what := "session " + count(int64(l.Sessions))
			if !paused {
				l.CutOff++
				what += "; the one before ended without a word"
			}
			paused = false
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
				l.phases = append(l.phases, designPhase{strings.TrimPrefix(e.What, "attribution: "), from.Seconds(), to.Seconds(), at})
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
}

// going reports whether the test has not come to its end.
func (l *LoadTest) going() bool { return l.State == "running" }
