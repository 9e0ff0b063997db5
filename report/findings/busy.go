package findings

import (
	"fmt"
	"slices"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/stats"
)

// What measures may use this share of the machine's CPUs.
const (
	busyHarness = 0.05
	// From this share on the links' emulator leaves too little for the nodes.
	busyEmulator = 0.50
)

// muchMore times its limit needs no test: no noise between trials brings there what
// belongs below the limit.
const muchMore = 1.5

// CPUs is what measures used in a cell, one value per valid trial, as shares of all
// CPUs of the machine; none where it is not known.
type CPUs struct {
	Where             string
	Harness, Emulator []float64
}

// Harness says where what measures used much of the machine: in the median over a
// cell's trials more than the limit. It is an alarm, not a discovery, and errs to the
// loud side: chance is asked for only where the median is near the limit and trials lie
// on both sides of it, by Student's test, one-sided, after Holm's correction over such
// cells.
func Harness(cells []CPUs) []Finding {
	f := Finding{Rule: "harness-busy", Tone: Warn, Title: "The harness used much of the machine",
		Text: fmt.Sprintf("Plimsoll itself used more than %s of the CPUs in these cells, or the emulator of their links more than %s: what they took, the nodes did not have.", words.Percent(busyHarness), words.Percent(busyEmulator))}
	ps := make([]float64, 0, 2*len(cells))
	for _, c := range cells {
		ps = append(ps, tooMuch(c.Harness, busyHarness), tooMuch(c.Emulator, busyEmulator))
	}
	tested := stats.Holm(slices.DeleteFunc(slices.Clone(ps), plain))
	shown := func(p float64) bool {
		if !plain(p) {
			p, tested = tested[0], tested[1:]
		}
		return p < boundAlpha
	}
	for i, c := range cells {
		var parts []string
		if shown(ps[2*i]) {
			parts = append(parts, "plimsoll "+words.PartOf(stats.Median(c.Harness)))
		}
		if shown(ps[2*i+1]) {
			parts = append(parts, "the emulator "+words.PartOf(stats.Median(c.Emulator)))
		}
		if parts != nil {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s of the machine (n = %d)", c.Where, words.List(parts), max(len(c.Harness), len(c.Emulator))))
		}
	}
	return withEvidence(f)
}

// plain reports whether a p is of what needs no test.
func plain(p float64) bool { return p == 0 || p == 1 }

// tooMuch is 0 where values are plainly too much, and 1 where they plainly are not;
// near the limit it is the chance of such values, or larger ones, were their mean at it.
func tooMuch(values []float64, limit float64) float64 {
	switch median := stats.Median(values); {
	case !(median > limit):
		return 1
	case median > min(muchMore*limit, (1+limit)/2), slices.Min(values) > limit:
		return 0 // of a large share there is not half as much again; half of what is left is as plain
	}
	return above(values, limit)
}
