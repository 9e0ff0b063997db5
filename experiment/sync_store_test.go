package experiment

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Measured sizes are below the estimates: the chain's bytes on the wire and the bytes of its store
// at the end of a sync.
func TestStoreBytes(t *testing.T) {
	for _, c := range []struct {
		what         string
		chain, store float64
	}{
		{"10,000 × 10 v2 with an index of all addresses", 55.9e6, 86e6 + 264e6 + 8e6},
		{"2000 × 10 v1 with an index of all addresses", 11.6e6, 117e6},
		{"3000 × 10 v1, consensus alone", 17e6, 86e6},
		{"an empty store", 0, 1 << 20},
	} {
		if got := StoreBytes(c.chain); got < c.store {
			t.Errorf("%s: %s are estimated, %s were measured", c.what, words.Bytes(got), words.Bytes(c.store))
		}
	}
	// Each further block fits, too, not only the first ones.
	if each := StoreBytes(2) - StoreBytes(1); each < 117/11.6 {
		t.Errorf("%g bytes of a store for each of the chain", each)
	}
	if StoreBytes(1e6) >= RAMDiskBytes(StoreBytes(1e6)) {
		t.Error("a RAM disk has no room beyond the store")
	}
}
