package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestBlocksThatDoNotDifferAreSeldomAccused(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const runs, alpha = 300, 0.05
	changes, differs := 0, 0
	for seed := range uint64(runs) {
		cells := make([][]float64, 3)
		for i := range cells {
			for b := range 8 {
				v := rng.NormFloat64()*float64(i+1) + 10*float64(i)
				if i == 1 && b == 4 {
					v = math.NaN()
				}
				cells[i] = append(cells[i], v)
			}
		}
		q := AskBlocks(cells, seed)
		if q.PChange <= alpha {
			changes++
		}
		if q.PDiffer <= alpha {
			differs++
		}
	}
	// 5 % of 300 are 15, with a standard deviation of 3.8.
	if changes > 27 || differs > 27 || changes < 4 || differs < 4 {
		t.Errorf("of %d at %g: %d changes, %d differences", runs, alpha, changes, differs)
	}
}

func TestBlocksThatDiffer(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	noise := func() float64 { return 0.02 * rng.NormFloat64() }
	falls, jumps := make([][]float64, 3), make([][]float64, 3)
	for i := range falls {
		for b := range 6 {
			falls[i] = append(falls[i], float64(i)-0.05*float64(b)+noise())
			jump := 0.0
			if b == 3 {
				jump = 0.3
			}
			jumps[i] = append(jumps[i], float64(i)+jump+noise())
		}
	}
	if q := AskBlocks(falls, 1); q.PChange > 0.001 || math.Abs(q.Change+0.25) > 0.05 {
		t.Errorf("falling: %+v", q)
	}
	if q := AskBlocks(jumps, 1); q.PDiffer > 0.01 || q.PChange < 0.05 || math.Abs(q.Level[3]-0.25) > 0.05 {
		t.Errorf("a jump: %+v", q)
	}
	// A single cell shows a change; its levels are its noise.
	if q := AskBlocks(falls[:1], 1); q.PChange > 0.01 || !math.IsNaN(q.PDiffer) {
		t.Errorf("one cell: %+v", q)
	}
}

func TestBlocksOfTooFew(t *testing.T) {
	for _, cells := range [][][]float64{nil, {{1}}, {{1, 2, 3, 4}, {2, 3, 4, 5}}, {{1, math.NaN(), math.NaN(), math.NaN(), math.NaN()}}} {
		if q := AskBlocks(cells, 1); !math.IsNaN(q.PChange) || !math.IsNaN(q.PDiffer) {
			t.Errorf("%v: %+v", cells, q)
		}
	}
	if q := AskBlocks([][]float64{{1, 1, 1, 1, 1, 1}}, 1); q.PChange != 1 || q.Change != 0 {
		t.Errorf("all equal: %+v", q)
	}
}
