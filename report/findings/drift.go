package findings

import (
	"fmt"
	"math"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Drift is what is known of a run's blocks: whether they were alike.
type Drift struct {
	Metric  string // its name, to begin a sentence with
	Systems []Drifting
	Seed    uint64
}

// Drifting is a system's: the values of each cell by block, divided by those of
// the baseline in the same block where there is one. NaN: no value.
type Drifting struct {
	System, Against string
	Cells           [][]float64
}

const (
	// Blocks that differ by less do not matter beside what differs between systems.
	driftFloor = 0.10
	// Of runs without drift fewer than this share may be accused, whatever the number
	// of systems and whichever of the two tests speaks.
	driftAlpha = 0.01
)

// Find names the systems whose blocks differ: those that rise or fall from the
// first block to the last, and those of which some blocks differ from the others.
// Both are permutation tests over the cells, corrected for all that were made.
func (d *Drift) Find() []Finding {
	var asked []stats.Blocks
	var ps []float64 // two of each system; 1: not to be told
	for _, s := range d.Systems {
		cells := make([][]float64, len(s.Cells))
		for i, row := range s.Cells {
			for _, v := range row {
				cells[i] = append(cells[i], math.Log(v))
			}
		}
		q := stats.AskBlocks(cells, d.Seed)
		asked = append(asked, q)
		for _, p := range []float64{q.PChange, q.PDiffer} {
			if !math.IsNaN(p) {
				ps = append(ps, p)
			}
		}
	}
	adjusted := stats.Holm(ps)
	passes := func(p float64) bool {
		if math.IsNaN(p) {
			return false
		}
		ok := adjusted[0] <= driftAlpha
		adjusted = adjusted[1:]
		return ok
	}
	f := Finding{Rule: "drift", Tone: Warn, Title: "Blocks differ, and not alike for all systems",
		Text: fmt.Sprintf("%s changed between blocks by more than %.0f %%, differently for different systems, and by more than repeated trials differ by: something changed during the run (heat, caches, growth, another load). Ratios are taken within blocks, which removes only what hits all alike.", d.Metric, 100*driftFloor)}
	for i, q := range asked {
		changes, differs := passes(q.PChange), passes(q.PDiffer)
		lo, hi := ends(q.Level)
		changes = changes && math.Abs(q.Change) > math.Log1p(driftFloor)
		differs = differs && q.Level[hi]-q.Level[lo] > math.Log1p(driftFloor)
		if !changes && !differs {
			continue
		}
		s := &d.Systems[i]
		words := s.System
		if s.Against != "" {
			words += " relative to " + s.Against
		}
		words += fmt.Sprintf(": %s at %.0f %%, %s at %.0f %% of its mean", record.BlockName(lo), 100*math.Exp(q.Level[lo]), record.BlockName(hi), 100*math.Exp(q.Level[hi]))
		if changes {
			words += fmt.Sprintf("; %+.0f %% from the first block to the last", 100*math.Expm1(q.Change))
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s (cells %d, blocks %d)", words, len(s.Cells), len(q.Level)))
	}
	if f.Evidence == nil {
		return nil
	}
	return []Finding{f}
}

// ends are where the least and the largest of values are that are known.
func ends(values []float64) (lo, hi int) {
	for i, v := range values {
		if v < values[lo] || math.IsNaN(values[lo]) {
			lo = i
		}
		if v > values[hi] || math.IsNaN(values[hi]) {
			hi = i
		}
	}
	return lo, hi
}
