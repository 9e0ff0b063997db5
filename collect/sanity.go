package collect

import (
	"fmt"
	"math"

	"github.com/plimsoll-project/plimsoll/system"
)

const (
	mostCount = 1 << 62 // above, a 64-bit unsigned counter has wrapped below zero
	mostBits  = 127     // above, a 128-bit one has; all siacoins ever need 117
	reorg     = 100     // blocks by which a chain's height may fall when it switches branches
)

// sanity marks readings that cannot be true. No reading is negative. Of all counts, only a chain's
// height never falls: files can be deleted, and the cost of contracts leaves the sum when they end.
type sanity struct{ height float64 }

// check returns r with the reason in Bad if it cannot be true.
func (s *sanity) check(r system.Reading) system.Reading {
	if r.Bad != "" {
		return r
	}
	switch {
	case math.IsNaN(r.Value) || math.IsInf(r.Value, 0):
		r.Bad = fmt.Sprintf("not a number: %v", r.Value)
	case r.Value < 0:
		r.Bad = fmt.Sprintf("negative: %g", r.Value)
	case r.Amount != nil && r.Amount.BitLen() > mostBits, r.Amount == nil && r.Value >= mostCount:
		r.Bad = fmt.Sprintf("below zero in an unsigned counter: %.4g", r.Value)
	case r.Name == system.ReadHeight && r.Value < s.height-reorg:
		r.Bad = fmt.Sprintf("fell from %.0f to %.0f", s.height, r.Value)
	}
	if r.Bad == "" && r.Name == system.ReadHeight {
		s.height = max(s.height, r.Value)
	}
	return r
}
