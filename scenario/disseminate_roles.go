package scenario

import (
	"math/rand/v2"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// roles is who does what in a trial, by the nodes' places: chosen by seeds that
// are the same for all systems.
type roles struct {
	seeders  []int
	leechers []int // in the order in which they come
	slow     []int
	victims  [][]int // of each fault
}

// chooseRoles draws the roles of a trial. Seeders depend on the experiment's seed
// and on the seeder set alone: the same for all sizes of content, so that trials
// that differ in nothing else are pairs. The order of the leechers and the victims
// depend on the trial's seed, too.
func chooseRoles(d *experiment.Disseminate, seed, trial uint64, number int) roles {
	set := number
	if k := d.SeederSets; k > 0 {
		set = ((number % k) + k) % k // warm-up is numbered from −1 down
	}
	all := shuffled(d.Nodes, mix(seed, "seeders", int64(set)))
	r := roles{seeders: all[:d.Seeders]}
	rest := all[d.Seeders:]
	r.slow = draw(rest, experiment.SlowLeechers(len(rest), d.Slow), mix(seed, "slow", int64(set)))
	r.leechers = draw(rest, len(rest), mix(trial, "order", 0))
	for i, f := range d.Faults {
		var from []int
		switch f.Who() {
		case "seeders":
			from = r.seeders
		case "leechers":
			from = rest
		default:
			from = all
		}
		r.victims = append(r.victims, draw(from, min(f.Of(len(from)), len(from)), mix(trial, "victims", int64(i))))
	}
	return r
}

// draw takes n of some places, in an order of chance.
func draw(from []int, n int, seed uint64) []int {
	out := make([]int, 0, n)
	for _, i := range shuffled(len(from), seed)[:n] {
		out = append(out, from[i])
	}
	return out
}

func shuffled(n int, seed uint64) []int { return rand.New(rand.NewPCG(seed, 1)).Perm(n) }
