package experiment

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// LoadLine returns the least time, in seconds, in which any n of the l leechers can have the content,
// if every node sends and receives without pause and nothing is sent in vain: it counts the copies of
// n, and the n-th fastest of the links, while all nodes send. payload returns the payload of a rate on
// the wire, both in bit/s; that of an unlimited link is infinite. The line is valid for trials without
// faults in which all leechers begin together. It is 0 if nothing is limited. For n = l it is
//
//	max(b / Σ up of the seeders, b / slowest down of a leecher, l·b / Σ up of all)
//
// (Mundinger, Weber, Weiss: Optimal scheduling of peer-to-peer file dissemination, J. Scheduling
// 11, 2008; Kumar, Ross: Peer-assisted file distribution, HotWeb 2006, which shows that it is reached
// in the fluid limit).
func (c Cell) LoadLine(n int, payload func(wire float64) float64) float64 {
	d, l := c.Disseminate, c.Disseminate.Leechers()
	rate := func(rates ...BitRate) float64 { return payload(unlimited(float64(cmp.Or(rates...)))) } // the first one given
	seed, all, downs := 0.0, 0.0, make([]float64, l)
	for range d.Seeders {
		seed += rate(c.Link.UpRate())
	}
	slow := d.Slow.Of(l)
	for i := range downs {
		up, down := rate(c.Link.UpRate()), rate(c.Link.DownRate())
		if i < slow {
			up, down = rate(d.SlowUp, c.Link.UpRate()), rate(d.SlowDown, c.Link.DownRate())
		}
		all += up
		downs[i] = down
	}
	slices.Sort(downs)
	bits := float64(c.Data.Size) * 8
	return max(bits/seed, bits/downs[l-n], float64(n)*bits/(all+seed))
}

// Limits of [Cell.PollEvery].
const (
	pollsPerLine = 100 // polls in the time in which the content crosses the links at best
	pollsInAll   = 80  // per second, for all leechers together
	shortestPoll = 10 * time.Millisecond
	longestPoll  = time.Second
	// For the scenario sync.
	pollsPerSync    = 200
	longestSyncPoll = 500 * time.Millisecond
)

// PollEvery returns the interval at which each leecher is asked for its progress: disseminate.poll
// or, if that is auto, a hundredth of the cell's load line, but at most 80 questions per second in
// all, and at least one per second; in whole milliseconds. It is the same for all systems of a
// group.
//
// In the scenario sync it is sync.poll or, if that is auto, a two-hundredth of the expected time of
// the sync, from 10 ms to half a second.
func (c Cell) PollEvery() time.Duration {
	if c.Sync != nil {
		if p := c.Sync.Poll; p != 0 {
			return p.Std()
		}
		every := time.Duration(c.Estimate.Operation / pollsPerSync * float64(time.Second)).Truncate(time.Millisecond)
		return min(longestSyncPoll, max(shortestPoll, every))
	}
	if p := c.Disseminate.Poll; p != 0 {
		return p.Std()
	}
	line := c.LoadLine(c.Disseminate.Leechers(), tcpPayload)
	seconds := max(line/pollsPerLine, float64(c.Disseminate.Leechers())/pollsInAll)
	seconds = math.Ceil(seconds*1000-1e-9) / 1000
	return min(longestPoll, max(shortestPoll, time.Duration(seconds*float64(time.Second))))
}
