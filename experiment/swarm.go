package experiment

import (
	"math"
	"time"
)

// Join is when the leechers of a swarm begin: all together (the zero value), in
// waves, or by a Poisson process.
type Join struct {
	Wave  int           // leechers at a time; 0: no waves
	Every time.Duration // from wave to wave
	Rate  float64       // arrivals per second, exponential gaps; 0: no Poisson process
}

// Together reports whether all leechers are released at one barrier.
func (j Join) Together() bool { return j.Wave == 0 && j.Rate == 0 }

// Stay is how long a leecher serves others once it has everything.
type Stay struct {
	Forever bool
	For     time.Duration // 0: it leaves at completion
}

// FaultKind is what goes wrong in a swarm.
type FaultKind string

const (
	FaultCrash FaultKind = "crash" // SIGKILL to the nodes' processes
	FaultCut   FaultKind = "cut"   // a partition: the nodes chosen on one side, all others on the other
	FaultRate  FaultKind = "rate"  // the nodes' links get another rate
)

// Fault is one fault of a swarm, with its end where it has one.
type Fault struct {
	Kind  FaultKind
	Who   string        // "seeders", "leechers" or "nodes"
	Count int           // of them; 0: see Share
	Share float64       // of them, rounded up to a whole node; 1: all
	Part  float64       // it begins when the leechers have this share of all their content together; NaN: see At
	At    time.Duration // it begins so long after the release
	For   time.Duration // after which it is undone: restarted, healed, the rate of before; 0: never
	Empty bool          // crash: restarted without its data
	Rate  BitRate       // rate: of both directions
}

// FluidBound is the least time, in seconds, in which size bytes can reach all l
// leechers from the seeders, if every node sends and receives without pause and
// nothing is sent in vain:
//
//	max(b / Σ up of the seeders, b / slowest down of a leecher, l·b / Σ up of all)
//
// (Mundinger, Weber, Weiss: Optimal scheduling of peer-to-peer file
// dissemination, J. Scheduling 11, 2008; Kumar, Ross: Peer-assisted file
// distribution, HotWeb 2006, who show that it is reached in the fluid limit).
// Rates are payload, bit/s; 0 is unlimited. +Inf is never returned: a rate that
// is unlimited makes its term 0.
func FluidBound(size int64, seedersUp, leechersUp, leechersDown []float64) float64 {
	bits := float64(size) * 8
	seed, all, down := 0.0, 0.0, math.Inf(1)
	for _, r := range seedersUp {
		seed += unlimited(r)
	}
	for _, r := range leechersUp {
		all += unlimited(r)
	}
	all += seed
	for _, r := range leechersDown {
		down = min(down, unlimited(r))
	}
	return max(bits/seed, bits/down, float64(len(leechersDown))*bits/all)
}

func unlimited(rate float64) float64 {
	if rate == 0 {
		return math.Inf(1)
	}
	return rate
}
