package disseminate

import (
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/workload"
)

// roles holds the roles of a trial's nodes, by place. The seeds that choose them are the same
// for all systems.
type roles struct {
	seeders  []int
	leechers []int // in the order of their releases
	slow     []int
	victims  [][]int // of each fault
}

// chooseRoles draws the roles of a trial. Seeders and slow leechers depend only on the
// experiment's seed and the seeder set. They are the same for all sizes of content, so that
// trials that differ only in size are pairs. The order of the leechers and the victims depend on
// the trial's seed.
func chooseRoles(d *experiment.Disseminate, faults []experiment.Fault, seed, trial uint64, number int) roles {
	set := number
	if k := d.SeederSets; k > 0 {
		set = ((number % k) + k) % k // numbers of warm-up trials are negative
	}
	all := nodes.Shuffled(d.Nodes, scenario.MixSeed(seed, "seeders", int64(set)))
	r := roles{seeders: all[:d.Seeders]}
	rest := all[d.Seeders:]
	r.slow = nodes.Draw(rest, d.Slow.Of(len(rest)), scenario.MixSeed(seed, "slow", int64(set)))
	r.leechers = nodes.Draw(rest, len(rest), scenario.MixSeed(trial, "order", 0))
	r.victims = nodes.Victims(faults, trial, map[string][]int{"seeders": r.seeders, "leechers": rest, "nodes": all})
	return r
}

// arrivals returns the offsets of n leechers from the release, in their order.
func arrivals(j experiment.Join, n int, seed uint64) []time.Duration {
	at := make([]time.Duration, n)
	switch {
	case j.Wave > 0:
		for i := range at {
			at[i] = time.Duration(i/j.Wave) * j.Every.Std()
		}
	case j.Poisson > 0:
		// The first arrives at once, since nothing happens before it.
		p := workload.Poisson{PerSecond: float64(j.Poisson), Seed: seed}
		for i := 1; i < n; i++ {
			gap, _ := p.Pace(at[i-1], uint64(i))
			at[i] = at[i-1] + gap
		}
	}
	return at
}
