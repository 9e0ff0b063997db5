package engine

import (
	"slices"
	"testing"
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
