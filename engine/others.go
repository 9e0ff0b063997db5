package engine

import (
	"iter"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// othersUsed adds up what others used of the machine's CPU over the sessions of a
// trial; the time between them is not of it.
type othersUsed struct {
	cpu  float64       // CPU seconds
	wall time.Duration // in which they were used
}

// leastWindow is the shortest window whose use of the machine's CPU is known: the
// kernel counts it in ticks of 10 ms.
const leastWindow = time.Second

func usedBetween(first, last record.Sample) othersUsed {
	return othersUsed{last.CPU - first.CPU, last.End - first.End}
}

// share of the machine's CPU; NaN where it is not known.
func (o othersUsed) share() float64 {
	if o.wall < leastWindow {
		return math.NaN()
	}
	return min(1, o.cpu/o.wall.Seconds()/float64(runtime.NumCPU()))
}

// counted is what others had used of the CPU since the session began, at a moment.
type counted struct {
	at  time.Time
	cpu float64 // seconds
}

// longestWindow bounds how far before its end a short trial is looked at.
const longestWindow = 10 * time.Second

// recentOthers are the counts at the begin and at the end of the trials of a session.
type recentOthers []counted

// add takes the edges of a trial that began at epoch.
func (r *recentOthers) add(epoch time.Time, first, last record.Sample) {
	for _, s := range []record.Sample{first, last} {
		if s.Process != "" && !math.IsNaN(s.CPU) {
			*r = append(*r, counted{epoch.Add(s.End), s.CPU})
		}
	}
	if n := len(*r); n > 64 {
		*r = slices.Clone((*r)[n-32:])
	}
}

// window is what others used in the shortest time that is long enough to be counted and
// ends with the last trial: what a trial shorter than that is judged by.
func (r recentOthers) window() othersUsed {
	for i := len(r) - 2; i >= 0; i-- {
		last := r[len(r)-1]
		switch w := (othersUsed{last.cpu - r[i].cpu, last.at.Sub(r[i].at)}); {
		case w.wall > longestWindow || w.cpu < 0:
			return othersUsed{}
		case w.wall >= leastWindow:
			return w
		}
	}
	return othersUsed{}
}

func (o othersUsed) plus(p othersUsed) othersUsed {
	if math.IsNaN(p.cpu) || p.wall <= 0 {
		return o
	}
	return othersUsed{o.cpu + p.cpu, o.wall + p.wall}
}

// recordedOthers is what the recorded samples of a trial's earlier sessions say.
// The counter of others begins at 0 with each session, which another process of
// ours belongs to.
func recordedOthers(samples iter.Seq2[record.Sample, error]) (sum othersUsed, err error) {
	var first, last record.Sample // of others, in one session
	begun, pid := false, 0
	end := func() {
		if begun {
			sum = sum.plus(usedBetween(first, last))
		}
		begun = false
	}
	var others record.Sample
	known := false // others is of the poll that self is expected of
	for s, err := range samples {
		if err != nil {
			return sum, err
		}
		switch s.Process {
		case testbed.OthersSample:
			others, known = s, true
		case testbed.SelfSample: // it comes last in a poll
			if !known || math.IsNaN(others.CPU) {
				continue
			}
			known = false
			if begun && (s.PID != pid || others.CPU < last.CPU) {
				end()
			}
			if !begun {
				first, begun = others, true
			}
			last, pid = others, s.PID
		}
	}
	end()
	return sum, nil
}
