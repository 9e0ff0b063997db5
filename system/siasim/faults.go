package siasim

import (
	"math"
	"math/big"
	"time"
)

// Faults are the simulated faults. Times are since the simulator's start.
type Faults struct {
	Events    []Event    // in chronological order
	Overshoot *Overshoot // files get more pieces than requested

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

// RenewEarly replaces a contract; this amount of its unspent money vanishes.
func RenewEarly(loss *big.Int) func(*Sim) {
	return func(s *Sim) {
		c := s.active()[0]
		s.form(c.host, SC(contractFunds))
		s.contracts[len(s.contracts)-1].size = c.size
		s.end(c, refreshed)
		Vanish(loss)(s)
	}
}

// Overfund forms contracts with hosts that had none, with this amount in total.
func Overfund(amount *big.Int) func(*Sim) {
	return func(s *Sim) {
		spare := s.spare()
		for _, h := range spare {
			s.form(h, new(big.Int).Quo(amount, big.NewInt(int64(len(spare)))))
		}
	}
}

// DeadHost ends a host that has a contract. hostdb drops it at once. Redundancy decreases when its
// contract ends, after fall, and is never repaired.
func DeadHost(at time.Duration, host int, fall time.Duration) []Event {
	return []Event{
		{at, func(s *Sim) { s.hosts[host].dead = true }},
		{at + fall, func(s *Sim) { s.lose(s.hosts[host]) }},
	}
}

// Overshoot is redundancy beyond the requested one: each file gets a redundancy drawn from Nominal
// + (Max − Nominal) · u^k, whose mean is Mean.
type Overshoot struct {
	Mean, Max float64
}

// overshoot adds pieces beyond the requested ones to a file.
func (s *Sim) overshoot(f *file) {
	o := s.conf.Faults.Overshoot
	if o == nil {
		return
	}
	nominal := float64(f.full) / float64(f.data)
	redundancy := nominal + (o.Max-nominal)*math.Pow(s.rand.Float64(), (o.Max-nominal)/(o.Mean-nominal)-1)
	f.pieces = max(f.full, int(math.Round(redundancy*float64(f.data))))
}

// lose ends the contract with a host for good: data there no longer count. As recorded with a real
// siad, a host without a contract gets one.
func (s *Sim) lose(h *host) {
	for _, c := range s.contracts {
		if c.host == h && c.state == active {
			s.end(c, expired)
		}
	}
	for _, f := range s.files {
		f.lost += f.on[h]
	}
	if spare := s.spare(); len(spare) > 0 {
		s.form(spare[0], SC(contractFunds))
	}
}
