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
		type comparison struct {
			cell   *Cell
			xs, ys []float64
		}
		var family []comparison
		tested := 0
		for _, c := range r.cells() {
			base := bases[c.Group]
			if base == nil || c.Baseline {
				continue
			}
			xs, ys, _ := r.pairs(key, c, base)
			if len(xs) == 0 {
				continue
			}
			family = append(family, comparison{c, xs, ys})
			if len(xs) >= fewestPairs {
				tested++
			}
		}
		all := make([]Ratio, len(family))
		ps := make([]float64, len(family))
		for i, f := range family {
			all[i] = ratioOf(f.xs, f.ys, tested)
			ps[i] = math.NaN()
			if all[i].N >= fewestPairs {
				ps[i] = float64(all[i].P)
			}
		}
		for i, p := range stats.Holm(ps) {
			q, c := all[i], family[i].cell
			q.PHolm = Num(p)
			q.decide(m.Better)
			if c.Ratios == nil {
				c.Ratios = map[string]Ratio{}
			}
			c.Ratios[key] = q
		}
		for _, s := range r.Systems {
			if !s.Baseline {
				r.pool(s.Name, key, bases)
			}
		}
	}
}

// pairs are the values of a cell and of its baseline that may be compared, with their
// blocks.
func (r *Report) pairs(key string, c, base *Cell) (xs, ys []float64, blocks []int) {
	if r.lens.alike != nil && !r.lens.alike(r, key, c, base) {
		return nil, nil, nil
	}
	return paired(c.Metrics[key], base.Metrics[key])
}

// paired are the values of two cells in the blocks that both have, in order of
// blocks. A system that delivered nothing is 0 times as fast as the baseline;
// against a baseline that delivered nothing there is no ratio. None are given
// when a trial's value is known only to be beyond what was watched: the others
// alone would flatter it.
func paired(a, b Summary) (xs, ys []float64, blocks []int) {
	if a.beyond+b.beyond > 0 {
		return nil, nil, nil
	}
	for i, block := range a.blocks {
		if j := slices.Index(b.blocks, block); j >= 0 && b.values[j] > 0 && a.values[i] >= 0 {
			xs, ys, blocks = append(xs, a.values[i]), append(ys, b.values[j]), append(blocks, block)
		}
	}
	return xs, ys, blocks
}

// alpha is the level at which a difference counts as shown.
const alpha = 1 - Confidence

// decide says whether a difference is shown: when the test passes, corrected for the
// comparisons of its metric. Its interval then excludes 1.
func (q *Ratio) decide(better record.Better) {
	q.Shown = q.N >= fewestPairs && float64(q.PHolm) <= alpha
	q.Better = direction(q.Shown, float64(q.Value), better)
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

// pool takes all cells of a system together: the geometric mean of their ratios, every
// cell weighing the same. Blocks are what is drawn, since a system in a block may be
// slow in all of its cells: test and interval are those of the blocks' means, and fewer
// than six blocks claim nothing. A single cell needs no pooling: its own comparison
// decides.
func (r *Report) pool(system, key string, bases map[string]*Cell) {
	m, _ := r.metric(key)
	o := Overall{System: system, Metric: key}
	var rows [][]float64 // logarithms of the ratios of a cell's pairs, by block
	var centres []float64
	var only Ratio
	for _, c := range r.cells() {
		base := bases[c.Group]
		if c.System != system || base == nil {
			continue
		}
		xs, ys, blocks := r.pairs(key, c, base)
		if len(xs) == 0 || !(c.Ratios[key].Value > 0) { // 0 has no place in a geometric mean; its cell shows it
			continue
		}
		row := slices.Repeat([]float64{math.NaN()}, slices.Max(blocks)+1)
		for i, b := range blocks {
			row[b] = math.Log(xs[i] / ys[i])
		}
		only = c.Ratios[key]
		rows, centres = append(rows, row), append(centres, math.Log(float64(only.Value)))
		if len(rows) == 1 || only.Value < o.Least.Value {
			o.Least = Extreme{r.shape.where(c), only.Value}
		}
		if len(rows) == 1 || only.Value > o.Most.Value {
			o.Most = Extreme{r.shape.where(c), only.Value}
		}
	}
	switch len(rows) {
	case 0:
		return
	case 1:
		o.N, o.Value, o.Lo, o.Hi, o.P, o.Shown, o.Better = only.N, only.Value, only.Lo, only.Hi, only.P, only.Shown, only.Better
	default:
		means := stats.BlockMeans(rows, centres)
		i, p := stats.PairedRatio(means, Confidence)
		o.N, o.Value, o.Lo, o.Hi, o.P = len(means), Num(math.Exp(total(centres)/float64(len(centres)))), unknown, unknown, Num(p)
		if i.Bounded() {
			o.Lo, o.Hi = min(Num(i.Lo), o.Value), max(Num(i.Hi), o.Value)
		}
		o.Shown = (o.Lo > 1 || o.Hi < 1) && p <= alpha
		o.Better = direction(o.Shown, float64(o.Value), m.Better)
	}
	r.Overall = append(r.Overall, o)
}
