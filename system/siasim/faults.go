package siasim

import (
	"fmt"
	"math/big"
	"time"
)

// Faults are what can be switched on. Moments are since the simulator began.
type Faults struct {
	FormationLeak    *Loss      // forming contracts takes money that no contract has: it vanishes
	PrematureRenewal *Loss      // a contract is replaced and so much of what it had not spent vanishes
	Overfund         *Loss      // contracts are bought with so much in them, which is not needed
	DeadHost         *DeadHost  // a host dies
	Overshoot        *Overshoot // files get more pieces than asked for
	Upgrade          *Upgrade   // the daemon is another version from then on

	Down      []Window // the daemon is being restarted: connections are refused
	HTML      []Window // every answer is a web page, with status 200
	Underflow []Window // counters are below zero: unsigned ones near 2^64, money with a minus
	Stall     []Window // no byte is uploaded
	Full      []Window // no host takes another sector, no contract is good for uploads
	Swallow   []Window // uploads are answered 204 and stored nowhere
}

// Window is a stretch of time; For 0: without an end.
type Window struct {
	From, For time.Duration
}

func (w Window) holds(at time.Duration) bool {
	return at >= w.From && (w.For == 0 || at < w.From+w.For)
}

func within(all []Window, at time.Duration) bool {
	for _, w := range all {
		if w.holds(at) {
			return true
		}
	}
	return false
}

// Loss is an amount at a moment.
type Loss struct {
	At     time.Duration
	Amount *big.Int // hastings
}

// DeadHost is the end of a host that has a contract. Downloads go on. hostdb
// drops it after Drop; redundancy falls when its contract ends: after Fall, or,
// when that is 0, when the contract's period does. It is never repaired.
type DeadHost struct {
	At   time.Duration
	Host int
	Drop time.Duration // 0: 180 s, as recorded
	Fall time.Duration
}

// Overshoot is redundancy beyond the one asked for: each file gets as much as is
// drawn from Nominal + (Max − Nominal) · u^k, whose mean is Mean.
type Overshoot struct {
	Mean, Max float64
}

// Upgrade is a new version of the daemon.
type Upgrade struct {
	At      time.Duration
	Version string
}

// moments are the faults of one moment with what they do, by name.
func (s *Sim) moments() []moment {
	f := s.faults
	var all []moment
	if l := f.FormationLeak; l != nil {
		all = append(all, moment{"formation leak", l.At, func(at time.Duration) { s.leak(at, l.Amount) }})
	}
	if l := f.PrematureRenewal; l != nil {
		all = append(all, moment{"premature renewal", l.At, func(at time.Duration) { s.renewEarly(at, l.Amount) }})
	}
	if l := f.Overfund; l != nil {
		all = append(all, moment{"overfunded contracts", l.At, func(at time.Duration) { s.overfund(at, l.Amount) }})
	}
	if d := f.DeadHost; d != nil && d.Host < len(s.hosts) {
		h := s.hosts[d.Host]
		drop := d.Drop
		or(&drop, 180*time.Second)
		all = append(all,
			moment{"host dead", d.At, func(at time.Duration) { h.dead = true; s.event(at, "host dead", nil, h.address) }},
			moment{"host dropped", d.At + drop, func(at time.Duration) { h.dropped = true; s.event(at, "host dropped", nil, h.address) }})
		if d.Fall > 0 {
			all = append(all, moment{"redundancy falls", d.At + d.Fall, func(at time.Duration) { s.endContracts(at, h) }})
		}
	}
	if u := f.Upgrade; u != nil {
		all = append(all, moment{"upgrade", u.At, func(at time.Duration) { s.conf.Version = u.Version; s.event(at, "upgrade", nil, u.Version) }})
	}
	return all
}

type moment struct {
	name string
	at   time.Duration
	do   func(at time.Duration)
}

// leak takes money out of the wallet that no contract gets.
func (s *Sim) leak(at time.Duration, amount *big.Int) {
	if !s.wallet.pay(amount, s.nextBlock(at)) {
		s.event(at, "formation leak", new(big.Int), "the wallet had less than "+amount.String())
		return
	}
	s.lost.Add(s.lost, amount)
	s.event(at, "formation leak", amount, "")
}

// renewEarly replaces the active contract that has spent least.
func (s *Sim) renewEarly(at time.Duration, amount *big.Int) {
	var c *contract
	for _, one := range s.active() {
		if c == nil || one.funds.Cmp(c.funds) > 0 {
			c = one
		}
	}
	if c == nil {
		s.event(at, "premature renewal", new(big.Int), "there is no contract")
		return
	}
	rest := new(big.Int).Set(c.funds)
	if !s.renew(at, c, s.conf.ContractFunds) {
		s.event(at, "premature renewal", new(big.Int), "the wallet could not pay for the new contract")
		return
	}
	lost := rest
	if amount != nil && amount.Cmp(rest) < 0 {
		lost = amount
	}
	// Of what it gave back, so much does not come back.
	s.wallet.lose(lost)
	s.lost.Add(s.lost, lost)
	s.event(at, "premature renewal", lost, c.id)
}

// overfund buys contracts with hosts that have none, or else replaces active
// ones, and spreads money over them that nobody needs.
func (s *Sim) overfund(at time.Duration, amount *big.Int) {
	var spare []*host
	for _, h := range s.hosts {
		if !h.dead && !s.contracted(h) {
			spare = append(spare, h)
		}
	}
	old := s.active()
	n := len(spare)
	if n == 0 {
		n = len(old)
	}
	if n == 0 {
		s.event(at, "overfunded contracts", new(big.Int), "there is no host")
		return
	}
	each, first := new(big.Int).QuoRem(amount, big.NewInt(int64(n)), new(big.Int))
	bought := new(big.Int)
	for i := range n {
		more := new(big.Int).Set(each)
		if i == 0 {
			more.Add(more, first)
		}
		ok := false
		if len(spare) > 0 {
			ok = s.form(spare[i], more) != nil
		} else {
			ok = s.renew(at, old[i], new(big.Int).Add(s.conf.ContractFunds, more))
		}
		if ok {
			bought.Add(bought, more)
		}
	}
	s.event(at, "overfunded contracts", bought, fmt.Sprintf("%d contracts", n))
}
