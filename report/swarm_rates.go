package report

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plimsoll-project/plimsoll/stats"
)

// part is how many of a trial's leechers had an outcome.
type part struct{ n, of float64 }

// rateOf is the share over trials. Leechers of one trial are not independent:
// they share seeders, links and faults, and often all of them fail or none. The
// interval is Clopper–Pearson for as many leechers as these are worth by the
// spread between the trials, with the correction for few trials, after Korn and
// Graubard (Survey Methodology 24, 1998): n / deff · (t(n−1) / t(m−1))². Where
// all trials had the same share, their spread says nothing, and with all or none
// the trials themselves are what was drawn: the leechers are worth as many as
// there are trials. One trial has no interval.
func rateOf(parts []part) Rate {
	q := Rate{Value: unknown, Lo: unknown, Hi: unknown}
	n, of, m := 0.0, 0.0, 0.0
	for _, p := range parts {
		n, of = n+p.n, of+p.of
		if p.of > 0 {
			m++
		}
	}
	q.N, q.Of = int64(n), int64(of)
	if of == 0 {
		return q
	}
	share := n / of
	q.Value = Num(share)
	if m < 2 {
		q.Worth = 1
		return q
	}
	worth := m
	if share > 0 && share < 1 {
		between := 0.0
		for _, p := range parts {
			d := p.n - p.of*share
			between += d * d
		}
		effect := max(1, between*m/(m-1)/(of*share*(1-share)))
		t := func(df float64) float64 {
			return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(1 - alpha/2)
		}
		worth = of / effect
		if of > 2 {
			worth *= math.Pow(t(of-1)/t(m-1), 2)
		}
	}
	worth = max(1, math.Floor(worth))
	lo := stats.Proportion(int64(math.Floor(share*worth)), int64(worth), Confidence)
	hi := stats.Proportion(int64(math.Ceil(share*worth)), int64(worth), Confidence)
	q.Lo, q.Hi, q.Worth = Num(lo.Lo), Num(hi.Hi), int64(worth)
	return q
}

// successOfLeechers fills each cell's success with the share of its leechers that
// got everything. A leecher that ran out of time counts: here the time is the
// question, and its limit the same for all systems.
func (r *Report) successOfLeechers(*input) {
	for _, c := range r.cells() {
		var parts []part
		p := Proportion{}
		for _, t := range r.Trials {
			s := r.swarms[t.ID]
			if t.Info != c || !t.Valid() || s == nil {
				continue
			}
			var q part
			for i := range s.leechers {
				switch f := &s.leechers[i]; {
				case !f.wanted():
					p.Censored++
				case !math.IsNaN(f.done):
					q.n, q.of = q.n+1, q.of+1
				default:
					q.of++
				}
			}
			parts = append(parts, q)
		}
		q := rateOf(parts)
		p.OK, p.Of, p.Value, p.Lo, p.Hi, p.Worth = q.N, q.Of, q.Value, q.Lo, q.Hi, q.Worth
		c.Success = p
	}
}
