package report

import (
	"math"

	"github.com/plimsoll-project/plimsoll/stats"
)

// rateOf is the share of leechers over trials. Leechers of one trial share seeders,
// links and faults: often all of them fail or none.
func rateOf(trials []stats.Count) Rate {
	q := Rate{Value: unknown, Lo: unknown, Hi: unknown}
	for _, t := range trials {
		q.N, q.Of = q.N+int64(t.K), q.Of+int64(t.N)
	}
	if q.Of == 0 {
		return q
	}
	i := stats.ClusteredProportion(trials, true, Confidence)
	q.Value, q.Worth = Num(i.Mid), int64(i.N)
	if i.Bounded() {
		q.Lo, q.Hi = Num(i.Lo), Num(i.Hi)
	}
	return q
}

// successOfLeechers fills each cell's success with the share of its leechers that
// got everything. A leecher that ran out of time counts: here the time is the
// question, and its limit the same for all systems.
func (r *Report) successOfLeechers(*input) {
	for _, c := range r.cells() {
		var parts []stats.Count
		p := Proportion{}
		for _, t := range r.Trials {
			s := r.swarms[t.ID]
			if t.Info != c || !t.Valid() || s == nil {
				continue
			}
			var q stats.Count
			for i := range s.leechers {
				switch f := &s.leechers[i]; {
				case !f.wanted():
					p.Censored++
				case !math.IsNaN(f.done):
					q.K, q.N = q.K+1, q.N+1
				default:
					q.N++
				}
			}
			parts = append(parts, q)
		}
		q := rateOf(parts)
		p.OK, p.Of, p.Value, p.Lo, p.Hi, p.Worth = q.N, q.Of, q.Value, q.Lo, q.Hi, q.Worth
		c.Success = p
	}
}
