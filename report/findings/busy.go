package findings

import (
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/report/internal/words"
	"github.com/plimsoll-project/plimsoll/stats"
)

// What measures may use this share of the machine's CPUs.
const (
	busyHarness = 0.05
	// From this share on the links' emulator leaves too little for the nodes.
	busyEmulator = 0.50
)

// clearly times its share is too much even where there are too few trials to tell how
// much they differ: no two trials of a cell do by as much.
const clearly = 2

// CPUs is what measures used in a cell, one value per valid trial, as shares of all
// CPUs of the machine; none where it is not known.
type CPUs struct {
	Where             string
	Harness, Emulator []float64
}

// Harness says where what measures used much of the machine: where that is shown over
// the trials, by Student's test, one-sided, after Holm's correction over all cells.
func Harness(cells []CPUs) []Finding {
	f := Finding{Rule: "harness-busy", Tone: Warn, Title: "The harness used much of the machine",
		Text: fmt.Sprintf("Plimsoll itself used more than %s of the CPUs in these cells, or the emulator of their links more than %s: what they took, the nodes did not have.", words.Percent(busyHarness), words.Percent(busyEmulator))}
	var ps []float64
	for _, c := range cells {
		ps = append(ps, tooMuch(c.Harness, busyHarness), tooMuch(c.Emulator, busyEmulator))
	}
	ps = stats.Holm(ps)
	for i, c := range cells {
		var parts []string
		if ps[2*i] < boundAlpha {
			parts = append(parts, "plimsoll "+words.PartOf(meanOf(c.Harness)))
		}
		if ps[2*i+1] < boundAlpha {
			parts = append(parts, "the emulator "+words.PartOf(meanOf(c.Emulator)))
		}
		if parts != nil {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s of the machine (n = %d)", c.Where, words.List(parts), max(len(c.Harness), len(c.Emulator))))
		}
	}
	if f.Evidence == nil {
		return nil
	}
	return []Finding{f}
}

// tooMuch is the chance of such values, or larger ones, were their mean at a limit;
// NaN: there are too few to tell.
func tooMuch(values []float64, limit float64) float64 {
	switch {
	case len(values) >= fewestTrials:
		return above(values, limit)
	case len(values) > 0 && slices.Min(values) > clearly*limit:
		return 0
	}
	return math.NaN()
}
