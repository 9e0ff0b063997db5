package siasim

import "time"

// epsilon makes up for rounding in sums of bytes, in sectors.
const epsilon = 1e-6

// advance brings the model up to now, event by event in the order of time.
func (s *Sim) advance() {
	now := max(time.Since(s.epoch), s.now)
	for {
		at, do := s.next(now)
		if do == nil {
			break
		}
		s.upload(at)
		s.now = at
		do()
	}
	s.upload(now)
	s.now = now
}

// next is the earliest of the events that are due; nil: there is none.
func (s *Sim) next(now time.Duration) (at time.Duration, do func()) {
	offer := func(when time.Duration, what func()) {
		when = max(when, s.now)
		if when <= now && (do == nil || when < at) {
			at, do = when, what
		}
	}
	for _, t := range s.wallet.pending {
		offer(t.at, func() { s.wallet.confirm(t.at) })
	}
	if s.forming > 0 {
		offer(s.forming, s.formWanted)
	}
	for _, m := range s.moments() {
		if !s.done[m.name] {
			offer(m.at, func() {
				s.done[m.name] = true
				m.do(s.now)
			})
		}
	}
	for _, c := range s.contract {
		switch {
		case c.state == active:
			offer(s.when(c.end-s.conf.RenewWindow), func() { s.inWindow(c) })
		case c.state == passive:
			offer(s.when(c.end), func() { s.endContracts(s.now, c.host) })
		}
	}
	return at, do
}

// inWindow renews a contract before it ends. With a dead host there is nobody to
// renew it with.
func (s *Sim) inWindow(c *contract) {
	if c.host.dead || !s.renew(s.now, c, s.conf.ContractFunds) {
		c.state = passive
		return
	}
	c.state = expired
}

// upload stores what has gone through the uplink until a moment.
func (s *Sim) upload(at time.Duration) {
	if len(s.jobs) == 0 {
		return
	}
	carried := s.link.carried(at, s.faults.Stall)
	sector := float64(s.conf.Sector)
	left := s.jobs[:0]
	stuck := false
	for _, j := range s.jobs {
		f := j.file
		through := min(int((carried-j.begin)/sector+epsilon), f.sectors())
		for !stuck && f.placed < through {
			if !s.store(at, f) {
				stuck = true
				s.pause(j, carried)
				break
			}
			f.changed = at
		}
		if !f.was && f.redundancy()*float64(f.data) >= float64(f.full)-epsilon {
			f.was = true
		}
		if f.placed < f.sectors() {
			left = append(left, j)
		}
	}
	clear(s.jobs[len(left):])
	s.jobs = left
}

// pause puts off a job, and all after it, whose next sector nobody takes.
func (s *Sim) pause(from *job, carried float64) {
	by := carried - (from.begin + float64(from.file.placed)*float64(s.conf.Sector))
	if by <= 0 {
		return
	}
	later := false
	for _, j := range s.jobs {
		if later = later || j == from; later {
			j.begin += by
		}
	}
	s.link.tail += by
}
