package siasim

import "math/big"

// Truth is the actual state, whatever the API reports. Money is in hastings.
type Truth struct {
	Total   *big.Int // of all contracts
	Missing *big.Int // in neither the wallet nor contracts nor lost through faults; the model is wrong unless it is 0

	Absolute int64 // bytes uploaded for existing files, including padding and redundancy
	Sent     int64 // the same for all files that ever existed
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
	for _, f := range s.files {
		t.Absolute += int64(f.placed) * s.conf.Sector
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
