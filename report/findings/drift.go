package findings

import (
	"fmt"
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Drift is what is known of a run's blocks: whether they were alike.
type Drift struct {
	Metric  string // its name, to begin a sentence with
	Systems []Drifting
	Seed    uint64
}

// Drifting is a system's: the values of each cell by block, NaN where there is none,
// and the same divided by those of the baseline in the same block.
type Drifting struct {
	System, Against string   // Against is empty where there is no other system to divide by
	Where           []string // of the cells
	Cells, Ratios   [][]float64
}

const (
	// Blocks that differ by less do not matter beside what differs between systems.
	driftFloor = 0.10
	// Of runs without drift fewer than this share may be accused by cells' own series,
	// and as few by ratios to the baseline, however many there are.
	driftAlpha = 0.01
)

// Find names the systems that changed during the run: cells that rise or fall from the
// first block to the last, the baseline's too, and systems that do so relative to the
// baseline, or whose ratio to it differs in some blocks. All are permutation tests,
// corrected for all that were made.
func (d *Drift) Find() []Finding {
	type test struct {
		of   string
		p    float64 // NaN: there is too little to tell
		size float64 // of the change, in logarithms
		say  string
		cell bool // it is of one cell
	}
	var own, relative []test
	for _, s := range d.Systems {
		for i, c := range s.Cells {
			q := stats.AskBlocks(logarithms([][]float64{c}), d.Seed)
			where := s.System
			if s.Where[i] != "" {
				where += ", " + s.Where[i]
			}
			own = append(own, test{s.System, q.PChange, math.Abs(q.Change), fmt.Sprintf("%s: %+.0f %% from the first block to the last (blocks %d)", where, 100*math.Expm1(q.Change), len(c)), true})
		}
		q := stats.AskBlocks(logarithms(s.Ratios), d.Seed)
		if len(q.Level) == 0 {
			continue
		}
		lo, hi := ends(q.Level)
		to := s.System + " relative to " + s.Against
		words := fmt.Sprintf("%s: %s at %.0f %%, %s at %.0f %% of its mean (cells %d, blocks %d)", to,
			record.BlockName(lo), 100*math.Exp(q.Level[lo]), record.BlockName(hi), 100*math.Exp(q.Level[hi]), len(s.Ratios), len(q.Level))
		relative = append(relative, test{to, q.PChange, math.Abs(q.Change), fmt.Sprintf("%s; %+.0f %% from the first block to the last", words, 100*math.Expm1(q.Change)), false},
			test{to, q.PDiffer, q.Level[hi] - q.Level[lo], words, false})
	}
	var found []test
	for _, family := range [][]test{own, relative} {
		ps := make([]float64, len(family))
		for i, t := range family {
			ps[i] = t.p
		}
		for i, p := range stats.Holm(ps) {
			if p <= driftAlpha && family[i].size > math.Log1p(driftFloor) {
				found = append(found, family[i])
			}
		}
	}
	if found == nil {
		return nil
	}
	f := Finding{Rule: "drift", Tone: Warn, Title: "Numbers changed during the run",
		Text: fmt.Sprintf("%s changed from block to block by more than %.0f %%, and by more than repeated trials differ by: something changed during the run (heat, caches, growth, another load). Ratios to the baseline are taken within blocks, which removes only what hits all alike.", d.Metric, 100*driftFloor)}
	for len(found) > 0 { // of each system the cell that changed most, of each ratio the first
		of, worst, n := found[0].of, found[0], 0
		found = slices.DeleteFunc(found, func(t test) bool {
			if t.of != of {
				return false
			}
			if n++; t.cell && t.size > worst.size {
				worst = t
			}
			return true
		})
		if worst.cell && n > 1 {
			worst.say += fmt.Sprintf("; also in %d more of its cells", n-1)
		}
		f.Evidence = append(f.Evidence, worst.say)
	}
	return []Finding{f}
}

func logarithms(rows [][]float64) [][]float64 {
	logs := make([][]float64, len(rows))
	for i, row := range rows {
		for _, v := range row {
			logs[i] = append(logs[i], math.Log(v))
		}
	}
	return logs
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
