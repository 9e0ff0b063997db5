package siasim

import (
	"math/big"
	"slices"
)

// Truth is the actual state, whatever the API reports. Money is in hastings.
type Truth struct {
	Total   *big.Int // of all contracts that ever existed
	Missing *big.Int // in neither the wallet nor contracts nor lost through faults; the model is wrong unless it is 0

	Absolute int64 // bytes uploaded for existing files, including padding and redundancy
	Sent     int64 // the same for all files that ever existed
	// Of the existing files that have ever reached full redundancy.
	RedundancyMean, RedundancyMin, RedundancyMax float64
}

// Truth returns the current state.
func (s *Sim) Truth() Truth {
	defer s.lock()()
	t := Truth{Total: new(big.Int), Sent: s.gone * s.conf.Sector}
	for _, c := range s.contracts {
		t.Total.Add(t.Total, c.total())
	}
	t.Missing = new(big.Int).Sub(SC(initialWallet), s.wallet)
	t.Missing.Sub(t.Missing, t.Total).Sub(t.Missing, s.lost)
	var whole []float64
	for _, f := range s.files {
		t.Absolute += int64(f.placed) * s.conf.Sector
		if f.chunks > 0 && !f.incomplete && f.placed >= f.chunks*f.full {
			whole = append(whole, f.redundancy())
		}
	}
	for _, r := range whole {
		t.RedundancyMean += r / float64(len(whole))
	}
	if len(whole) > 0 {
		t.RedundancyMin, t.RedundancyMax = slices.Min(whole), slices.Max(whole)
	}
	t.Sent += t.Absolute
	return t
}

// Stored describes the content of an object.
type Stored struct {
	Size   int64
	SHA256 string // lower-case hex
}

// Stored returns all objects whose content is complete, by path.
func (s *Sim) Stored() map[string]Stored {
	defer s.lock()()
	all := map[string]Stored{}
	for path, f := range s.files {
		if !f.incomplete {
			all[path] = Stored{f.size, f.sum}
		}
	}
	return all
}
