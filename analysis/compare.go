package analysis

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// EffectFloor is the smallest change that a verdict reports.
const EffectFloor = 0.05

// FewestPairs is the smallest number of pairs for which a difference is claimed.
const FewestPairs = 4

// Ratio compares a cell with the baseline's cell of the same group, within blocks.
type Ratio struct {
	N int `json:"n"` // blocks in which both have a valid trial
	Range
	Confidence float64 `json:"confidence"` // of Lo and Hi; less than 0.95 if they are the range of the pairs
	Test               // Wilcoxon's signed-rank test over pairs; Student's if Warn says so
	Warn       string  `json:"warn,omitempty"`
}

// Test says whether a ratio differs from 1.
type Test struct {
	P           Num  `json:"p"`
	PHolm       Num  `json:"p_holm"` // corrected for the other comparisons of the metric
	Significant bool `json:"significant"`
	Better      int  `json:"better"` // if significant and above the effect floor: 1 better, −1 worse; otherwise 0
}

// Overall is one system's ratio to the baseline over all its cells.
type Overall struct {
	System string `json:"system"`
	Metric string `json:"metric"`
	N      int    `json:"n"` // blocks
	Range
	P           Num  `json:"p"`
	Significant bool `json:"significant"`
	Better      int  `json:"better"`
}

// compare computes the ratios of each cell to the baseline's cell of its group, and pools them
// over groups. Trials are paired by block, so that effects common to a block cancel.
func (f *Frame) compare() []Overall {
	overall := []Overall{}
	for _, m := range f.Metrics {
		if !slices.Contains(f.View.Compared, m.Key) {
			continue
		}
		var cells []*Cell
		var family [][]float64 // logarithms of each cell's ratios
		tested := 0
		for _, c := range f.Cells {
			base := f.base(c)
			if base == nil {
				continue
			}
			if logs, _ := f.pairs(m.Key, c, base); len(logs) > 0 {
				cells, family = append(cells, c), append(family, logs)
				if len(logs) >= FewestPairs {
					tested++
				}
			}
		}
		all, ps := make([]Ratio, len(family)), make([]float64, len(family))
		for i, logs := range family {
			all[i], ps[i] = ratioOf(logs, tested), math.NaN()
			if all[i].N >= FewestPairs {
				ps[i] = float64(all[i].P)
			}
		}
		for i, p := range stats.Holm(ps) {
			q, c := all[i], cells[i]
			q.PHolm = Num(p)
			q.Significant = q.N >= FewestPairs && p <= alpha
			q.Better = direction(q.Significant, q.Value, m.Better)
			if c.Ratios == nil {
				c.Ratios = map[string]Ratio{}
			}
			c.Ratios[m.Key] = q
		}
		if f.View.Arrange != nil { // the mean of configurations of one system means nothing
			continue
		}
		overall = append(overall, f.overall(m)...)
	}
	return overall
}

// base returns the cell that a cell is compared with; nil: none.
func (f *Frame) base(c *Cell) *Cell {
	b, _ := find(f.Cells, func(b *Cell) bool { return b.Baseline && b.Pair == c.Pair && !c.Baseline })
	return b
}

// pairs returns the logarithms of the ratios of a cell to its baseline in the blocks that both
// have. A system that delivered nothing is 0 times as fast; to a baseline that delivered nothing
// there is no ratio. If a trial of either is censored it returns none, because the remaining
// trials would be biased.
func (f *Frame) pairs(metric string, c, base *Cell) (logs []float64, blocks []int) {
	if f.View.Alike != nil && !f.View.Alike(f, metric, c, base) {
		return nil, nil
	}
	a, b := c.Metrics[metric], base.Metrics[metric]
	if a.Censored+b.Censored > 0 {
		return nil, nil
	}
	for i, block := range a.Blocks {
		if j := slices.Index(b.Blocks, block); j >= 0 && b.Values[j] > 0 && a.Values[i] >= 0 {
			logs, blocks = append(logs, math.Log(a.Values[i]/b.Values[j])), append(blocks, block)
		}
	}
	return logs, blocks
}

// RatioTo returns a metric of a cell divided by that of another, within blocks; none if a trial
// of either is censored. The text of one from too few pairs says how many.
func (f *Frame) RatioTo(metric string, c, base *Cell) Value {
	logs, _ := f.pairs(metric, c, base)
	logs = slices.DeleteFunc(logs, func(x float64) bool { return math.IsInf(x, -1) })
	if len(logs) == 0 {
		return Text("")
	}
	i, _ := stats.PairedRatio(logs, Confidence)
	v := Estimate(i)
	if len(logs) < FewestPairs {
		v.Text = FewPairs(words.Show(i.Mid, "×"), len(logs))
	}
	return v
}

// FewPairs marks the text of a ratio from too few pairs.
func FewPairs(ratio string, pairs int) string { return fmt.Sprintf("%s (n %d)", ratio, pairs) }

// ratioOf returns the ratio within pairs. It uses the signed-rank test and its interval if they
// can be significant after correction for a family of so many comparisons. Fewer pairs get
// Student's test, and fewer than four only the range of their ratios.
func ratioOf(logs []float64, family int) Ratio {
	n := len(logs)
	i, p := stats.PairedRatio(logs, Confidence)
	q := Ratio{N: n}
	switch {
	case n < FewestPairs:
		q.Warn = texts().Pairs["few"]
	case stats.LeastPairedP(n)*float64(family) > alpha:
		if t, tp := stats.StudentRatio(logs, Confidence); t.Bounded() {
			i.Lo, i.Hi, i.Conf, p = min(i.Mid, t.Lo), max(i.Mid, t.Hi), t.Conf, tp
		}
		q.Warn = Fill(texts().Pairs["student"], map[string]any{"N": n, "Family": int64(family)})
	}
	q.Range, q.Confidence, q.P = rangeOf(i), i.Conf, Num(p)
	if i.Bounded() {
		return q
	}
	if q.Confidence = 0; n > 1 {
		q.Lo, q.Hi, q.Confidence = Num(math.Exp(slices.Min(logs))), Num(math.Exp(slices.Max(logs))),
			stats.RangeConfidence(n)
	}
	return q
}

// direction is +1 if a significant ratio is better, −1 if it is worse, and 0 if it is neither or
// below the effect floor.
func direction(significant bool, ratio Num, better record.Better) int {
	if !significant || math.Abs(math.Log(float64(ratio))) < math.Log1p(EffectFloor) {
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

// overall compares systems with the baseline over all cells; the systems are a family for Holm's correction.
func (f *Frame) overall(m record.Metric) (all []Overall) {
	family := 0
	for _, s := range f.Systems {
		if slices.ContainsFunc(f.Cells, func(c *Cell) bool { return c.System == s.Name && f.base(c) != nil }) {
			family++
		}
	}
	var ps []float64
	for _, s := range f.Systems {
		if o, ok := f.pool(s, m, family); ok {
			all, ps = append(all, o), append(ps, float64(o.P))
		}
	}
	for i, p := range stats.Holm(ps) {
		if !(p <= alpha) {
			all[i].Significant, all[i].Better = false, 0
		}
	}
	return all
}

// Pooled returns the geometric mean of cells' ratios, given their logarithms by block and the
// centre of each cell, with its interval, p-value and number of blocks. Test and interval are Student's
// if the signed-rank test cannot be significant in a family of so many comparisons.
func Pooled(rows [][]float64, centres []float64, family int) (v Value, p float64, blocks int) {
	means := stats.BlockMeans(rows, centres)
	i, p := stats.PairedRatio(means, Confidence)
	if least := stats.LeastPairedP(len(means)); least <= alpha && least*float64(family) > alpha {
		i, p = stats.StudentRatio(means, Confidence)
	}
	v = Number(math.Exp(stat.Mean(centres, nil)))
	if i.Bounded() {
		v.Lo, v.Hi = min(Num(i.Lo), v.Number), max(Num(i.Hi), v.Number)
	}
	return v, p, len(means)
}

// pool returns the geometric mean of a system's ratios, with equal weight for each cell. Blocks
// are the unit, because a system may be slow in all cells of a block: test and interval are those
// of the blocks' means, and with fewer than six blocks nothing is claimed. A single cell needs no
// pooling.
func (f *Frame) pool(s System, m record.Metric, family int) (Overall, bool) {
	o := Overall{System: s.Name, Metric: m.Key}
	var rows [][]float64 // logarithms of the ratios of a cell's pairs, by block
	var centres []float64
	var only Ratio
	for _, c := range f.Cells {
		base := f.base(c)
		if c.System != s.Name || base == nil {
			continue
		}
		logs, blocks := f.pairs(m.Key, c, base)
		if len(logs) == 0 || !(c.Ratios[m.Key].Value > 0) { // a geometric mean cannot include 0
			continue
		}
		row := slices.Repeat([]float64{math.NaN()}, slices.Max(blocks)+1)
		for i, b := range blocks {
			row[b] = logs[i]
		}
		only = c.Ratios[m.Key]
		rows, centres = append(rows, row), append(centres, math.Log(float64(only.Value)))
	}
	switch len(rows) {
	case 0:
		return o, false
	case 1:
		o.N, o.Range, o.P, o.Significant, o.Better = only.N, only.Range, only.P, only.Significant, only.Better
		return o, true
	}
	v, p, n := Pooled(rows, centres, family)
	o.N, o.Range, o.P = n, Range{v.Number, v.Lo, v.Hi}, Num(p)
	o.Significant = (o.Lo > 1 || o.Hi < 1) && p <= alpha
	o.Better = direction(o.Significant, o.Value, m.Better)
	return o, true
}
