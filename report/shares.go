package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/report/findings"
)

// valueOf is a summary as rules look at it.
func valueOf(s Summary) findings.Value {
	return findings.Value{Mid: float64(s.Median), Lo: float64(s.Lo), Hi: float64(s.Hi), N: s.N}
}

var unknownValue = findings.Value{Mid: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}

// metricValue is a metric of a cell.
func (c *Cell) metricValue(key string) findings.Value {
	if m, ok := c.Metrics[key]; ok {
		return valueOf(m)
	}
	return unknownValue
}

// parted is one quantity as a part of another, in one trial.
type parted struct{ part, whole float64 }

// parts are what one metric is of another in each valid trial of a cell that has both.
func (r *Report) parts(c *Cell, of, by func(*Trial) float64) (all []parted) {
	for i := range r.Trials {
		if t := &r.Trials[i]; t.Info == c && t.Valid() {
			if p := (parted{of(t), by(t)}); p.share()-p.share() == 0 {
				all = append(all, p)
			}
		}
	}
	return all
}

func (p parted) share() float64 { return p.part / p.whole }

// shareOver is the share over trials with its interval, and the trial that stands for
// them: the one with the middle share, of an even number the lower of two. What is said
// of a share is of that trial alone, since neither means nor medians of parts and
// wholes divide to those of shares.
func shareOver(all []parted) (findings.Value, parted) {
	if len(all) == 0 {
		return unknownValue, parted{math.NaN(), math.NaN()}
	}
	var xs []float64
	for _, p := range all {
		xs = append(xs, p.share())
	}
	ranked := slices.Clone(all)
	slices.SortStableFunc(ranked, func(a, b parted) int { return cmp.Compare(a.share(), b.share()) })
	mid := ranked[(len(ranked)-1)/2]
	v := valueOf(summaryOf(xs, nil))
	v.Mid = mid.share()
	return v, mid
}

// quotient is one metric divided by another, in each valid trial of a cell.
func (r *Report) quotient(c *Cell, of, by func(*Trial) float64) findings.Value {
	var xs []float64
	for _, p := range r.parts(c, of, by) {
		xs = append(xs, p.share())
	}
	if len(xs) == 0 {
		return unknownValue
	}
	return valueOf(summaryOf(xs, nil))
}

// measured is a metric of a trial; NaN: it has none.
func measured(key string) func(*Trial) float64 {
	return func(t *Trial) float64 {
		if v, ok := t.Metrics[key]; ok {
			return v
		}
		return math.NaN()
	}
}

// startedWith is the share that one time of each cell has in another.
func (r *Report) startedWith(before, whole string, then func(*Cell) string) []findings.Started {
	var all []findings.Started
	for _, c := range r.cells() {
		if share, mid := shareOver(r.parts(c, measured(before), measured(whole))); share.N > 0 {
			s := findings.Started{System: c.System, Cell: r.shape.where(c), Share: share, Before: mid.part, Whole: mid.whole, Middle: true}
			if then != nil {
				s.Then = then(c)
			}
			all = append(all, s)
		}
	}
	return all
}

// retrieveStarts: how much of a request passes before its first byte.
func retrieveStarts(r *Report) []Finding {
	return findings.StartUp(r.startedWith("ttfb_p50", "duration_p50", nil))
}

// swarmStarts: how much of the median leecher's time passes before its first byte.
func swarmStarts(r *Report) []Finding {
	return findings.StartUp(r.startedWith("first_byte", "time_median", nil))
}

// syncStarts: how much of a fresh node's time passes before its first block.
func syncStarts(r *Report) []Finding {
	var all []findings.Started
	for i := range r.Syncs {
		s := &r.Syncs[i]
		if !s.Default && !r.isBest(s) {
			continue
		}
		share, mid := shareOver(s.starts())
		x := findings.Started{System: s.System, Cell: strings.TrimPrefix(r.syncName(s), s.System+", "), Share: share, Before: mid.part, Whole: mid.whole, Middle: true}
		if v := s.metric("block_rate"); !math.IsNaN(v) {
			x.Then = fmt.Sprintf("then %s blocks/s", digits(v, 3))
		}
		all = append(all, x)
	}
	return findings.StartUp(all)
}

// costStarts: how much of an operation on the largest objects does not go with their
// size, by the fit. The bounds are those of the fit's parts, all at their worst.
func costStarts(r *Report) []Finding {
	var all []findings.Started
	for i := range r.Fits {
		f := &r.Fits[i]
		if f.model == nil || !f.Holds && !f.near() || !(f.B.Value > 0) || !f.B.Lo.Known() || !f.A.Lo.Known() {
			continue
		}
		rtt := 0.0
		for _, p := range f.points {
			rtt = max(rtt, p.RTT)
		}
		before := f.A
		if r := f.Rounds; r.Value.Known() {
			add := func(a, r Num) Num { return a + r*Num(rtt) }
			before = Estimate{add(f.A.Value, r.Value), add(f.A.Lo, r.Lo), add(f.A.Hi, r.Hi)}
		}
		if !before.Lo.Known() || !before.Hi.Known() {
			continue
		}
		share := func(before, b Num) float64 { return float64(max(0, before) / (max(0, before) + max(0, b)*f.To)) }
		half := float64(max(0, before.Value) / f.B.Value)
		all = append(all, findings.Started{System: f.System, Cell: fmt.Sprintf("%s of %s at an RTT of %s", r.nameOf(f), sizeWords(float64(f.To)), show(rtt, "s")),
			Share:  findings.Value{Mid: share(before.Value, f.B.Value), Lo: share(before.Lo, f.B.Hi), Hi: share(before.Hi, f.B.Lo), N: f.Points},
			Before: float64(before.Value), Whole: float64(before.Value + f.B.Value*f.To),
			Then: fmt.Sprintf("half of it at %s", show(half, "B"))})
	}
	return findings.StartUp(all)
}

// swarmTraffic: bytes that leechers received in vain.
func swarmTraffic(r *Report) []Finding {
	var all []findings.Carried
	for i := range r.Swarms {
		s := &r.Swarms[i]
		all = append(all, findings.Carried{Name: s.name(), Link: s.cell.metricValue("overhead"), Payload: s.cell.metricValue("duplicates"), Of: "content"})
	}
	return findings.SentTwice(all)
}

// syncTraffic: bytes that are no part of the chain fill links, too.
func syncTraffic(r *Report) []Finding {
	var all []findings.Carried
	for i := range r.Syncs {
		s := &r.Syncs[i]
		all = append(all, findings.Carried{Name: r.syncName(s), Link: s.cell.metricValue("overhead"), Payload: unknownValue, Of: "chain"})
	}
	return findings.SentTwice(all)
}

// largeObject is from how many bytes on what an operation says beside an object is
// no longer much of what crosses the link.
const largeObject = 1 << 20

// costTraffic: what crosses the client's link for each byte that has to: of what is
// fetched its own, of what is stored those that the servers get.
func costTraffic(r *Report) []Finding {
	var all []findings.Carried
	for _, c := range r.cells() {
		o := c.overhead()
		if o == nil || c.size() < largeObject || r.local(c) {
			continue
		}
		of, what := func(*Trial) float64 { return c.size() }, "object"
		switch o.Operation {
		case "put", "put-durable":
			of, what = measured("absolute_per_op"), "absolute bytes"
		case "get":
		default:
			continue
		}
		all = append(all, findings.Carried{Name: r.shape.named(c), Link: r.quotient(c, measured("wire_bytes"), of), Payload: unknownValue, Of: what})
	}
	return findings.SentTwice(all)
}

// swarmBalance: seeders that others leave the work to.
func swarmBalance(r *Report) []Finding {
	var all []findings.Burden
	for i := range r.Swarms {
		s := &r.Swarms[i]
		if xs := s.busiestSeeder(); xs != nil {
			all = append(all, findings.Burden{Name: s.name(), Parties: "seeders", Of: s.Seeders, Busiest: valueOf(summaryOf(xs, nil)), Useless: math.NaN()})
		}
	}
	return findings.Unbalanced(all)
}

// busiestSeeder is the part of the seeder that sent most, times their number, in
// each trial with several.
func (s *Swarm) busiestSeeder() (all []float64) {
	for _, t := range s.trials {
		var sent []float64
		for _, n := range t.nodes {
			if n.seeder {
				sent = finite(sent, n.sent)
			}
		}
		if sum := total(sent); len(sent) > 1 && sum > 0 {
			all = append(all, largest(sent)/sum*float64(len(sent)))
		}
	}
	return all
}

// syncBalance: peers that could have given as much as the one that gave most. Of
// peers with links of different rates, or with no wish to help, nothing even is to
// be expected.
func syncBalance(r *Report) []Finding {
	var all []findings.Burden
	for i := range r.Syncs {
		s := &r.Syncs[i]
		if !s.quiet() || !s.Default && !r.isBest(s) {
			continue
		}
		var busiest, idle []float64
		peers := 0
		for _, t := range s.trials {
			var blocks []float64
			useless, rate, alike := 0.0, math.NaN(), true
			for _, p := range t.peers {
				if p.manner != peerHonest {
					alike = false
				}
				alike = alike && (math.IsNaN(rate) || p.rate == rate)
				rate = p.rate
				blocks = finite(blocks, p.blocks)
				if p.blocks == 0 {
					useless++
				}
			}
			if sum := total(blocks); t.served() && alike && len(blocks) > 1 && sum > 0 {
				peers = max(peers, len(blocks))
				busiest = append(busiest, largest(blocks)/sum*float64(len(blocks)))
				idle = append(idle, useless/float64(len(blocks)))
			}
		}
		if busiest != nil {
			all = append(all, findings.Burden{Name: r.syncName(s), Parties: "peers", Of: peers, Busiest: valueOf(summaryOf(busiest, nil)), Useless: middle(idle)})
		}
	}
	return findings.Unbalanced(all)
}
