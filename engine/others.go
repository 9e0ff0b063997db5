package engine

import (
	"iter"
	"math"
	"runtime"
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

// share of the machine's CPU; NaN where it is not known.
func (o othersUsed) share() float64 {
	if o.wall < leastWindow {
		return math.NaN()
	}
	return min(1, o.cpu/o.wall.Seconds()/float64(runtime.NumCPU()))
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
			sum = sum.plus(othersUsed{last.CPU - first.CPU, last.End - first.End})
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
