package collect

import (
	"fmt"
	"math"

	"github.com/plimsoll-project/plimsoll/system"
)

const (
	mostCount = 1 << 62 // above it an unsigned counter of 64 bits has gone below zero
	mostBits  = 127     // likewise one of 128 bits; all siacoins that will ever be take 117
	reorg     = 100     // blocks by which a chain's height may fall: it took another branch
)

// sanity keeps readings out that cannot be true. Nothing that is read is
// negative. Of what is counted, only a chain's height never falls: files are
// deleted, and what contracts cost leaves the sum when they end.
type sanity struct{ height float64 }

// check is r, with what is wrong with it in Bad.
func (s *sanity) check(r system.Reading) system.Reading {
	if r.Bad != "" {
		return r
	}
	switch {
	case math.IsNaN(r.Value) || math.IsInf(r.Value, 0):
		r.Bad = fmt.Sprintf("not a number: %v", r.Value)
	case r.Amount != nil && r.Amount.Sign() < 0:
		r.Bad = "negative: " + r.Amount.String()
	case r.Value < 0:
		r.Bad = fmt.Sprintf("negative: %g", r.Value)
	case r.Amount != nil && r.Amount.BitLen() > mostBits:
		r.Bad = "below zero in an unsigned counter: " + r.Amount.String()
	case r.Amount == nil && r.Value >= mostCount:
		r.Bad = fmt.Sprintf("below zero in an unsigned counter: %.4g", r.Value)
	case r.Name == system.ReadHeight && r.Value < s.height-reorg:
		r.Bad = fmt.Sprintf("fell from %.0f to %.0f", s.height, r.Value)
	}
	if r.Bad == "" && r.Name == system.ReadHeight {
		s.height = max(s.height, r.Value)
	}
	return r
}
