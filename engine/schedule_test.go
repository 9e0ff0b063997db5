package engine

import (
	"fmt"
	"slices"
	"testing"
)

func TestOrderIsAPermutationOfItsOwnPerBlock(t *testing.T) {
	seen := map[string]bool{}
	for block := range 50 {
		o := Order(7, block, 12)
		seen[fmt.Sprint(o)] = true
		if !slices.Equal(o, Order(7, block, 12)) {
			t.Fatalf("block %d: the order is not reproducible", block)
		}
		slices.Sort(o)
		if o[0] != 0 || o[11] != 11 || len(slices.Compact(o)) != 12 {
			t.Fatalf("block %d: %v is no permutation", block, o)
		}
	}
	if len(seen) != 50 || slices.Equal(Order(7, 0, 12), Order(8, 0, 12)) {
		t.Errorf("50 blocks have %d orders, or another seed gives the same", len(seen))
	}
}
