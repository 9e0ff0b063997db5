package report

import (
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// compared are the metrics whose ratios to the baseline are computed.
func (r *Report) compared() []string {
	var keys []string
	for _, m := range r.Metrics {
		if slices.Contains(r.lens.compared, m.Key) {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

// compare fills each cell's ratios to the baseline's cell of its group, and
// pools them over groups. Trials are paired by block: what a block does to all
// alike cancels.
func (r *Report) compare() {
	if r.Baseline == "" {
		return
	}
	bases := map[string]*Cell{}
	for _, c := range r.cells() {
		if c.Baseline {
			bases[c.Group] = c
		}
	}
	for _, key := range r.compared() {
		m, _ := r.metric(key)
		var family []*Cell
		for _, c := range r.cells() {
			base := bases[c.Group]
			if base == nil || c.Baseline {
				continue
			}
			xs, ys := r.pairs(key, c, base)
			if len(xs) == 0 {
				continue
			}
			q := ratioOf(xs, ys, r.Run.Seed)
			if c.Ratios == nil {
				c.Ratios = map[string]Ratio{}
			}
			c.Ratios[key] = q
			family = append(family, c)
		}
		ps := make([]float64, len(family))
		for i, c := range family {
			ps[i] = float64(c.Ratios[key].P)
		}
		adjusted := stats.Holm(ps)
		for i, c := range family {
			q := c.Ratios[key]
			q.PHolm = Num(adjusted[i])
			q.decide(m.Better, len(family))
			c.Ratios[key] = q
		}
		for _, s := range r.Systems {
			if !s.Baseline {
				r.pool(s.Name, key, bases)
			}
		}
	}
}

// pairs are the values of a cell and of its baseline that may be compared.
func (r *Report) pairs(key string, c, base *Cell) (xs, ys []float64) {
	if r.lens.alike != nil && !r.lens.alike(r, key, c, base) {
		return nil, nil
	}
	return paired(c.Metrics[key], base.Metrics[key])
}

// paired are the values of two cells in the blocks that both have, in order of
// blocks. A system that delivered nothing is 0 times as fast as the baseline;
// against a baseline that delivered nothing there is no ratio. None are given
// when a trial's value is known only to be beyond what was watched: the others
// alone would flatter it.
func paired(a, b Summary) (xs, ys []float64) {
	if a.beyond+b.beyond > 0 {
		return nil, nil
	}
	for i, block := range a.blocks {
		if j := slices.Index(b.blocks, block); j >= 0 && b.values[j] > 0 && a.values[i] >= 0 {
			xs, ys = append(xs, a.values[i]), append(ys, b.values[j])
		}
	}
	return xs, ys
}

// alpha is the level at which a difference counts as shown.
const alpha = 1 - Confidence

// leastP is the smallest p that a comparison of n trials with n can reach.
func leastP(n int) float64 { return stats.MinP(n, n) }

// decide says whether a difference is shown. The interval must exclude 1 and
// the rank test must agree, over the whole family of comparisons. Where n is
// too small for the family ever to pass, the single comparison decides and the
// ratio carries a warning.
func (q *Ratio) decide(better record.Better, family int) {
	apart := q.Lo.Known() && q.Hi.Known() && (q.Lo > 1 || q.Hi < 1)
	reachable := leastP(q.N)*float64(family) <= alpha
	switch {
	case leastP(q.N) > alpha:
		q.Warn = "too few trials to show a difference"
	case reachable:
		q.Shown = apart && float64(q.PHolm) <= alpha
	default:
		q.Shown = apart && float64(q.P) <= alpha
		q.Warn = "too few trials to correct for the number of comparisons"
	}
	q.Better = direction(q.Shown, float64(q.Value), better)
}

// repeated leaves out the groups with a single pair, whose spread nobody knows,
// as long as there are two others: one thin cell must not take the interval away
// from all.
func repeated(groups [][2][]float64) [][2][]float64 {
	var more [][2][]float64
	for _, g := range groups {
		if len(g[0]) > 1 {
			more = append(more, g)
		}
	}
	if len(more) < 2 {
		return groups
	}
	return more
}

// direction is +1 when a shown ratio is better, -1 when worse, 0 when it is
// not shown or below the effect floor.
func direction(shown bool, ratio float64, better record.Better) int {
	if !shown || math.Abs(math.Log(ratio)) < math.Log1p(EffectFloor) {
		return 0
	}
	up := 1
	if ratio < 1 {
		up = -1
	}
	switch better {
	case record.Higher:
		return up
	case record.Lower:
		return -up
	}
	return 0
}

// pool takes the pairs of all groups together: the geometric mean of their
// ratios, which are those of their cells and so hold it between them, every group
// weighing the same, an interval by bootstrap within groups, and a sign-flip test
// over the pairs; groups with a single pair are left out where there are others.
// A single group needs no pooling: its own comparison decides.
func (r *Report) pool(system, key string, bases map[string]*Cell) {
	m, _ := r.metric(key)
	o := Overall{System: system, Metric: key}
	var groups [][2][]float64
	var only Ratio
	for _, c := range r.cells() {
		base := bases[c.Group]
		if c.System != system || base == nil {
			continue
		}
		xs, ys := r.pairs(key, c, base)
		if len(xs) == 0 {
			continue
		}
		if !(c.Ratios[key].Value > 0) { // 0 has no place in a geometric mean; its cell shows it
			continue
		}
		groups = append(groups, [2][]float64{xs, ys})
		only = c.Ratios[key]
		q := float64(only.Value)
		if len(groups) == 1 || Num(q) < o.Least.Value {
			o.Least = Extreme{r.shape.where(c), Num(q)}
		}
		if len(groups) == 1 || Num(q) > o.Most.Value {
			o.Most = Extreme{r.shape.where(c), Num(q)}
		}
	}
	groups = repeated(groups)
	logs := make([][]float64, len(groups))
	for i, g := range groups {
		o.N += len(g[0])
		for j, x := range g[0] {
			if x > 0 {
				logs[i] = append(logs[i], math.Log(x/g[1][j]))
			}
		}
	}
	if o.N == 0 {
		return
	}
	if len(groups) == 1 {
		o.Value, o.Lo, o.Hi, o.P, o.Shown, o.Better = only.Value, only.Lo, only.Hi, only.P, only.Shown, only.Better
	} else {
		mean := stats.MeanPairedRatio(groups, Confidence, r.Run.Seed)
		o.Value, o.Lo, o.Hi = Num(mean.Mid), unknown, unknown
		if mean.Bounded() {
			o.Lo, o.Hi = Num(mean.Lo), Num(mean.Hi)
		}
		o.P = Num(flipTest(logs, r.Run.Seed))
		o.Shown = (o.Lo > 1 || o.Hi < 1) && float64(o.P) <= alpha
		o.Better = direction(o.Shown, mean.Mid, m.Better)
	}
	r.Overall = append(r.Overall, o)
}
