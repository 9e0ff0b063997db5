package siasim

import (
	"math/big"
	"slices"
	"strings"
	"time"
)

// Event is something that a fault did.
type Event struct {
	At     time.Duration // since the simulator began
	What   string        // "formation leak", "host dead", …
	Amount *big.Int      // hastings; nil: no money
	Note   string
}

func (s *Sim) event(at time.Duration, what string, amount *big.Int, note string) {
	if amount != nil {
		amount = new(big.Int).Set(amount)
	}
	s.events = append(s.events, Event{at, what, amount, note})
}

type counts struct{ files, bytes, sectors int64 }

// Truth is what is so, whatever the API says. Money is in hastings.
type Truth struct {
	At     time.Duration
	Height int64
	Events []Event // so far, in their order

	Initial *big.Int // all the money there was, deposits included
	Wallet  *big.Int // what can be spent, unconfirmed included
	// Of all contracts that there ever were:
	Total, Fees, Upload, Storage, Download, Unspent *big.Int
	Lost                                            *big.Int // vanished through faults

	Contracts int // in use
	Files     int
	Done      int   // with their full redundancy; of renterd slabs are counted here
	Below     int   // that had it and have it no longer; the same
	Bytes     int64 // of the files
	Absolute  int64 // uploaded for the files that there are, padding and redundancy included
	Sent      int64 // the same for all that there ever were
	Bandwidth float64
	// Of the files that are done or below.
	RedundancyMean, RedundancyMin, RedundancyMax float64
}

// Truth is the state now.
func (s *Sim) Truth() Truth {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	t := Truth{
		At: s.now, Height: s.height(s.now), Events: append([]Event(nil), s.events...),
		Initial: new(big.Int).Set(s.initial), Wallet: s.wallet.balance(), Lost: new(big.Int).Set(s.lost),
		Total: new(big.Int), Fees: new(big.Int), Upload: new(big.Int), Storage: new(big.Int), Download: new(big.Int), Unspent: new(big.Int),
		Files: len(s.files), Sent: s.gone.sectors * s.conf.Sector,
	}
	for _, c := range s.contract {
		if c.state == active {
			t.Contracts++
		}
		t.Total.Add(t.Total, c.total)
		t.Fees.Add(t.Fees, c.fees)
		t.Upload.Add(t.Upload, c.upload)
		t.Storage.Add(t.Storage, c.storage)
		t.Download.Add(t.Download, c.download)
		t.Unspent.Add(t.Unspent, c.funds)
	}
	sum, n := 0.0, 0
	stored := slices.Clone(s.renterd.slabs)
	for _, f := range s.files {
		t.Bytes += f.size
		if !strings.HasPrefix(f.path, bucketMark) {
			stored = append(stored, f)
		}
	}
	for _, f := range stored {
		t.Absolute += int64(f.placed) * s.conf.Sector
		if !f.was || f.chunks == 0 {
			continue
		}
		r := f.redundancy()
		if r*float64(f.data) < float64(f.full)-epsilon {
			t.Below++
		} else {
			t.Done++
		}
		sum += r
		if n++; n == 1 || r < t.RedundancyMin {
			t.RedundancyMin = r
		}
		t.RedundancyMax = max(t.RedundancyMax, r)
	}
	if n > 0 {
		t.RedundancyMean = sum / float64(n)
	}
	t.Sent += t.Absolute
	if !within(s.faults.Stall, s.now) {
		t.Bandwidth = s.link.at(s.now)
	}
	return t
}

// Missing is the money that is neither in the wallet nor accounted for by
// contracts nor lost through faults: 0, or the model is wrong.
func (t Truth) Missing() *big.Int {
	rest := new(big.Int).Sub(t.Initial, t.Wallet)
	return rest.Sub(rest, t.Total).Sub(rest, t.Lost)
}

// Parts is the sum of what contracts' money became; it is Total, or the model is
// wrong.
func (t Truth) Parts() *big.Int {
	sum := new(big.Int).Add(t.Fees, t.Upload)
	return sum.Add(sum, t.Storage).Add(sum, t.Download).Add(sum, t.Unspent)
}

// Stored is what is known of an object's content.
type Stored struct {
	Path   string
	Size   int64
	SHA256 string // lower-case hex
}

// Stored are all objects whose content came whole, by path.
func (s *Sim) Stored() map[string]Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	all := map[string]Stored{}
	for path, f := range s.files {
		if !f.incomplete {
			path = strings.TrimPrefix(path, bucketMark) // renterd's: bucket and key
			all[path] = Stored{Path: path, Size: f.size, SHA256: f.sum}
		}
	}
	return all
}
