package record

import (
	"iter"
	"math"
	"regexp"
	"strings"
)

// windowNs is the width of a window: a second.
const windowNs = int64(1e9)

// Window is what happened in one second of a trial.
type Window struct {
	Second   int64              `db:"second"`   // begins this many seconds after the epoch
	Outcomes [numOutcomes]int64 `db:"outcomes"` // operations that ended in it, by Outcome
	// Bytes are the body bytes received in it. An operation's bytes are spread evenly from
	// its first byte to its last, so that a long transfer does not appear as a burst at its
	// end; the sum over all windows is exact.
	Bytes int64 `db:"bytes"`
}

// maxSpread is the largest number of windows over which the bytes of an operation are spread;
// those of a longer operation all count in its last window.
const maxSpread = 24 * 3600

// windower accumulates what has to be added to the stored windows of a trial.
type windower map[int64]*Window // by second

func (w windower) at(second int64) *Window {
	o := w[second]
	if o == nil {
		o = &Window{Second: second}
		w[second] = o
	}
	return o
}

func (w windower) add(op *Op) {
	if op.Kind == OpWarmup {
		return
	}
	end := w.at(floorDiv(op.LastByte, windowNs))
	end.Outcomes[op.Outcome]++
	if op.Bytes != 0 {
		w.spread(op, end)
	}
}

// spread adds the operation's bytes to the windows from its first byte (or its start, if it
// has none) to its last.
func (w windower) spread(op *Op, end *Window) {
	from := op.FirstByte
	if from == 0 {
		from = op.Start
	}
	first := floorDiv(from, windowNs)
	span := op.LastByte - from
	if first >= end.Second || end.Second-first > maxSpread {
		end.Bytes += op.Bytes
		return
	}
	var given int64
	for second := first; second < end.Second; second++ {
		share := float64((second+1)*windowNs-from) / float64(span)
		upTo := min(int64(math.Round(share*float64(op.Bytes))), op.Bytes)
		w.at(second).Bytes += upTo - given
		given = upTo
	}
	end.Bytes += op.Bytes - given
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// windowTable adds written rows to existing ones.
var windowTable = newTable[Window]("windows", "second", "trial, ", "ON CONFLICT (trial, second) DO UPDATE SET "+
	regexp.MustCompile(`\w+`).ReplaceAllString(windowSums, "$0 = $0 + excluded.$0"))

var windowSums = "bytes, " + strings.ReplaceAll(strings.Join(outcomeNames[:], ", "), "-", "_")

// Windows streams the seconds of a trial in which something happened, in order and in constant
// memory. After an error it ends. While the trial runs, past windows can still grow: by bytes
// of a long transfer or late operations.
func (r *Reader) Windows(trial int64) iter.Seq2[Window, error] {
	return stream(r, windowTable, trial, math.MinInt64)
}
