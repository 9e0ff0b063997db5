package engine

import (
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

func TestOrderIsAPermutationOfItsOwnPerBlock(t *testing.T) {
	seen := map[int]bool{}
	var first [][]int
	for block := range 50 {
		o := Order(7, block, 12)
		sorted := slices.Sorted(slices.Values(o))
		for i, v := range sorted {
			if i != v {
				t.Fatalf("block %d: %v is no permutation", block, o)
			}
		}
		if !slices.Equal(o, Order(7, block, 12)) {
			t.Fatalf("block %d: the order is not reproducible", block)
		}
		for _, earlier := range first {
			if slices.Equal(earlier, o) {
				t.Errorf("block %d has the order of an earlier one", block)
			}
		}
		first = append(first, o)
		seen[o[0]] = true
	}
	if len(seen) < 10 {
		t.Errorf("only %d of 12 cells ever came first in 50 blocks", len(seen))
	}
	if slices.Equal(Order(7, 0, 12), Order(8, 0, 12)) {
		t.Error("another seed gives the same order")
	}
}

func TestNarrowEnough(t *testing.T) {
	tight := []float64{100, 101, 99, 100, 102, 98, 100, 101, 99, 100}
	wide := []float64{100, 150, 60, 90, 200, 40, 100, 130, 70, 110}
	if !narrowEnough(tight, 0.05) {
		t.Error("values within 2 % are not narrow enough for 5 %")
	}
	if narrowEnough(wide, 0.05) {
		t.Error("values that differ fivefold are narrow enough for 5 %")
	}
	if narrowEnough(tight[:3], 0.05) {
		t.Error("three values cannot have a 95 % interval of the median")
	}
	if narrowEnough(nil, 0.5) {
		t.Error("no values are narrow enough")
	}
}

// A run that was interrupted within a block decides on resumption as it had
// before that block: a group is not left half measured in it.
func TestResumedRunDecidesAsBefore(t *testing.T) {
	cell := experiment.Cell{ID: "a", System: "s"}
	r := &run{plan: &experiment.Plan{Cells: []experiment.Cell{cell}}, done: map[trialKey]record.Trial{}}
	r.plan.Experiment.Repetitions = experiment.Repetitions{Min: 6, Until: &experiment.Until{Metric: "throughput", Within: 0.05}}
	// At 95 %, six values give their whole range: 100 ± 10. Twelve within 1 % more
	// narrow it, but those are of blocks to come.
	for block := range 18 {
		v := 100.0
		switch block {
		case 0:
			v = 90
		case 1:
			v = 110
		}
		r.done[trialKey{"a", block}] = record.Trial{State: record.Done, Metrics: map[string]float64{"throughput": v}}
	}
	if r.narrowGroups(6)[cell.Group()] {
		t.Error("before block 6 the interval is judged by blocks after it")
	}
	if !r.narrowGroups(18)[cell.Group()] {
		t.Error("18 values, 16 of them equal, are not narrow enough")
	}
}
