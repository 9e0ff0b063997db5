package siasim

import (
	"math/big"
	"time"
)

// Faults are the simulated faults. Times are since the simulator's start.
type Faults struct {
	Events []Event // in chronological order

	Down      Window // the daemon is restarting: connections are refused
	HTML      Window // every answer is a web page, with status 200
	Underflow Window // counters are negative: unsigned ones near 2^64, money with a minus sign
	Stall     Window // nothing is uploaded
	Full      Window // no host accepts another sector, and no contract is good for uploads
	Swallow   Window // uploads are answered 204 but stored nowhere
}

// Window is a period of time, without an end if For is 0. The zero Window never occurs.
type Window struct {
	From, For time.Duration
}

// passed returns how much of a window lies before a time.
func (w Window) passed(at time.Duration) time.Duration {
	switch {
	case w == Window{} || at < w.From:
		return 0
	case w.For == 0:
		return at - w.From
	}
	return min(at-w.From, w.For)
}

// has reports whether a fault is active.
func (s *Sim) has(w Window) bool {
	return w != Window{} && s.now >= w.From && (w.For == 0 || s.now < w.From+w.For)
}

// Event is a fault that acts at one time. The model calls Do, which is one of the functions below.
type Event struct {
	At time.Duration
	Do func(*Sim)
}

// Vanish removes money from the wallet that goes nowhere.
func Vanish(amount *big.Int) func(*Sim) {
	return func(s *Sim) {
		s.wallet.Sub(s.wallet, amount)
		s.lost.Add(s.lost, amount)
	}
}

// Overfund forms contracts with hosts that had none, with this amount in total.
func Overfund(amount *big.Int) func(*Sim) {
	return func(s *Sim) {
		spare := s.conf.Hosts - len(s.contracts)
		for range spare {
			s.form(new(big.Int).Quo(amount, big.NewInt(int64(spare))))
		}
	}
}
