package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Comparison compares runs with a base run. Its JSON is the output of `plimsoll compare --json`
// (docs/compare.md).
type Comparison struct {
	Format   int             `json:"format"`
	Scenario string          `json:"scenario"`
	Headline string          `json:"headline"`
	Verdict  Verdict         `json:"verdict"`
	Base     ComparedRun     `json:"base"`
	New      []ComparedRun   `json:"new"`
	Differs  []Difference    `json:"differs"`
	Metrics  []record.Metric `json:"metrics"` // the headline first
	Overall  []OverCells     `json:"overall"`
	Cells    []*ComparedCell `json:"cells"`
	Unlike   []UnlikeCell    `json:"unlike"`
	Only     []OnlyCell      `json:"only"`
	Notes    []string        `json:"notes"`
	Gates    []Ruling        `json:"gates,omitempty"`

	Asked []string `json:"-"` // metrics whose cells are all shown, the headline first
	base  *Result
	news  []*Result
}

// ComparedRun is one of the compared runs.
type ComparedRun struct {
	Dir      string `json:"dir"`
	Plimsoll string `json:"plimsoll,omitempty"`
	Run      Run    `json:"run"`
}

// ComparedCell is a cell of the base run and at least one other run.
type ComparedCell struct {
	System  string                    `json:"system"`
	Where   string                    `json:"where"`
	Factors []Factor                  `json:"factors"`
	Metrics map[string]ComparedMetric `json:"metrics"`

	base *Cell
	news []*Cell // nil for runs without it
}

// ComparedMetric is a metric of a cell. New has one entry for each new run, null if that run
// lacks the cell or the metric.
type ComparedMetric struct {
	Base Summary          `json:"base"`
	New  []*ComparedValue `json:"new"`
}

// ComparedValue is a metric of a new run's cell, and its ratio to the base run's.
type ComparedValue struct {
	Summary
	Ratio RunRatio `json:"ratio"`
}

// RunRatio is new over base: the ratio of the medians, with an interval for unpaired samples.
type RunRatio struct {
	Range
	Test // Mann–Whitney over trials, corrected over the cells and new runs of this metric
	// Needed is the number of trials of each run that this comparison needs; 0: it has enough,
	// or nothing is claimed about the metric.
	Needed int `json:"needed,omitempty"`
	// CutOff names the run, "new" or "base", with half or more of its trials censored: then
	// there is no ratio, and only the rank test decides.
	CutOff string `json:"cut_off,omitempty"`
	Warn   string `json:"warn,omitempty"`
}

// OverCells is a metric over all common cells of a new run and the base run: the geometric mean
// of the cells' ratios.
type OverCells struct {
	New    string `json:"new"` // directory of the run
	Metric string `json:"metric"`
	Cells  int    `json:"cells"`
	Range
	Test               // corrected over the new runs
	BetterCells int    `json:"cells_better"`
	WorseCells  int    `json:"cells_worse"`
	SmallCells  int    `json:"cells_below_floor"` // significant, but below the effect floor
	SameCells   int    `json:"cells_not_significant"`
	OpenCells   int    `json:"cells_inconclusive"` // too few trials, or nothing is claimed about the metric
	Warn        string `json:"warn,omitempty"`     // why nothing is claimed

	needed int // trials of each run that the cells need; 0: they have enough
}

// OnlyCell is a cell that not both of two runs have.
type OnlyCell struct {
	System string `json:"system"`
	Where  string `json:"where"`
	In     string `json:"in"`
	NotIn  string `json:"not_in"`
}

// UnlikeCell is a cell with the same system and factors as in the base run, but different
// settings.
type UnlikeCell struct {
	System   string    `json:"system"`
	Where    string    `json:"where"`
	New      string    `json:"new"`
	Settings []Setting `json:"settings"`
	Compared bool      `json:"compared"` // compared nevertheless, on request
}

// Setting is a setting that differs.
type Setting struct {
	Path string `json:"path"`
	Base string `json:"base"`
	New  string `json:"new"`
}

// CompareOptions say what to compare.
type CompareOptions struct {
	Metrics []string // besides those of the view; "all": all metrics of the base run
	Unlike  bool     // also compare cells whose settings differ
}

// CompareRuns compares results with that of a base run.
func CompareRuns(base *Result, news []*Result, dirs []string, o CompareOptions) (*Comparison, error) {
	c := &Comparison{Format: Format, Scenario: base.Scenario, Headline: base.Headline, Differs: []Difference{},
		Unlike: []UnlikeCell{}, Only: []OnlyCell{},
		Notes: []string{}, Overall: []OverCells{}, Cells: []*ComparedCell{}, Metrics: []record.Metric{}, base: base,
		news: news}
	for i, r := range append([]*Result{base}, news...) {
		side := ComparedRun{Dir: dirs[i], Plimsoll: r.Environ("plimsoll"), Run: r.Run}
		if i == 0 {
			c.Base = side
			continue
		}
		if r.Scenario != base.Scenario {
			return nil, ui.Exit(ui.CodeInvalid, fmt.Errorf("%s is of scenario %s and %s of %s: they cannot be compared",
				dirs[i], r.Scenario, dirs[0], base.Scenario))
		}
		c.New = append(c.New, side)
	}
	if err := c.choose(o.Metrics); err != nil {
		return nil, err
	}
	c.match(o.Unlike)
	c.differences()
	for _, m := range c.Metrics {
		c.measure(m)
		c.over(m)
	}
	c.remark()
	c.Verdict = c.verdict()
	return c, nil
}

// Environ returns a value of the environment; empty if it was not recorded.
func (r *Result) Environ(key string) string {
	p, _ := find(r.Environment, func(p Pair) bool { return p.Key == key })
	return p.Value
}

// choose selects the metrics to compare.
func (c *Comparison) choose(more []string) error {
	var keys []string
	for _, m := range c.base.Metrics {
		keys = append(keys, m.Key)
	}
	c.Asked = []string{c.Headline}
	for _, key := range more {
		switch {
		case key == "all":
			c.Asked = append(c.Asked, keys...)
		case slices.Contains(keys, key):
			c.Asked = append(c.Asked, key)
		default:
			return ui.Exit(ui.CodeUsage, ui.WithHint(fmt.Errorf("the run has no metric %q", key),
				"metrics: "+strings.Join(keys, ", ")))
		}
	}
	wanted := slices.Concat(c.Asked, c.base.View.Compared, successMetrics)
	measured := func(r *Result, key string) bool {
		return slices.ContainsFunc(r.Cells, func(cell *Cell) bool { return len(r.Frame.Of(cell, key)) > 0 })
	}
	for _, key := range wanted {
		m, ok := c.base.Frame.Metric(key)
		if ok && !slices.Contains(c.Metrics, m) && measured(c.base, key) &&
			slices.ContainsFunc(c.news, func(r *Result) bool { return measured(r, key) }) {
			c.Metrics = append(c.Metrics, m)
		}
	}
	if len(c.Metrics) == 0 {
		c.note("nothing", nil)
	}
	return nil
}

// match finds the common cells of runs: those with the same settings, and those with the same
// system and factors but different settings.
func (c *Comparison) match(unlike bool) {
	type key struct {
		cell        *Cell
		settings    map[string]string
		named, same string
	}
	keysOf := func(r *Result) (all []key) {
		for _, cell := range r.Cells {
			settings := r.settings(cell)
			all = append(all, key{cell, settings, fmt.Sprintf("%q %s", cell.System, cell.Group),
				fmt.Sprintf("%q %q", cell.System, settings)})
		}
		return all
	}
	base := keysOf(c.base)
	rows := make([]*ComparedCell, len(base))
	for i, k := range base {
		rows[i] = &ComparedCell{System: k.cell.System, Where: c.base.Frame.Layout.Where(k.cell),
			Factors: k.cell.Factors,
			Metrics: map[string]ComparedMetric{}, base: k.cell, news: make([]*Cell, len(c.news))}
	}
	for n, r := range c.news {
		news := keysOf(r)
		take := func(is func(key) bool) (k key, found bool) {
			i := slices.IndexFunc(news, is)
			if i < 0 {
				return k, false
			}
			k = news[i]
			news = slices.Delete(news, i, i+1)
			return k, true
		}
		for i, row := range rows {
			k, found := take(func(k key) bool { return k.same == base[i].same })
			if !found {
				continue
			}
			row.news[n] = k.cell
			if len(row.Factors) < len(k.cell.Factors) { // the factor does not vary in the base run
				row.Where, row.Factors = r.Frame.Layout.Where(k.cell), k.cell.Factors
			}
		}
		for i, row := range rows {
			if row.news[n] != nil {
				continue
			}
			k, found := take(func(k key) bool { return k.named == base[i].named })
			if !found {
				c.Only = append(c.Only, OnlyCell{row.System, row.Where, c.Base.Dir, c.New[n].Dir})
				continue
			}
			c.Unlike = append(c.Unlike, UnlikeCell{System: row.System, Where: row.Where, New: c.New[n].Dir,
				Settings: changed(base[i].settings, k.settings), Compared: unlike})
			if unlike {
				row.news[n] = k.cell
			}
		}
		for _, k := range news {
			c.Only = append(c.Only, OnlyCell{k.cell.System, r.Frame.Layout.Where(k.cell), c.New[n].Dir, c.Base.Dir})
		}
	}
	for _, row := range rows {
		if slices.ContainsFunc(row.news, func(cell *Cell) bool { return cell != nil }) {
			c.Cells = append(c.Cells, row)
		}
	}
}

// changed returns the settings that differ.
func changed(base, other map[string]string) []Setting {
	all := maps.Clone(base)
	maps.Copy(all, other)
	var differ []Setting
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if base[path] != other[path] {
			differ = append(differ, Setting{path, base[path], other[path]})
		}
	}
	return differ
}

// measure compares all cells in one metric: by the rank test after Holm's correction, with an
// interval that agrees with it.
func (c *Comparison) measure(m record.Metric) {
	type task struct {
		xs, ys []float64 // base, new
		never  string    // result of never
		value  *ComparedValue
		share  stats.Interval // ratio of the shares of all operations, for success metrics
	}
	var tasks []task
	for _, cell := range c.Cells {
		before := c.base.Frame.Of(cell.base, m.Key)
		if len(before) == 0 {
			continue
		}
		row := ComparedMetric{Base: summaryOf(before), New: make([]*ComparedValue, len(c.news))}
		base := row.Base.pool(c.base.Frame, cell.base, m)
		for k, other := range cell.news {
			if other == nil || len(c.news[k].Frame.Of(other, m.Key)) == 0 {
				continue
			}
			after := c.news[k].Frame.Of(other, m.Key)
			row.New[k] = &ComparedValue{Summary: summaryOf(after)}
			share := stats.RatioOf(row.New[k].pool(c.news[k].Frame, other, m), base)
			tasks = append(tasks, task{finite(before, m), finite(after, m), never(after, before), row.New[k], share})
		}
		cell.Metrics[m.Key] = row
	}
	var ps []float64
	for _, t := range tasks {
		t.value.Ratio = unpaired(t.ys, t.xs, t.never)
		if t.share.Mid > 0 {
			t.value.Ratio.Range = rangeOf(t.share)
		}
		ps = append(ps, float64(t.value.Ratio.P))
	}
	ps = stats.Holm(ps)
	for i, t := range tasks {
		q := &t.value.Ratio
		q.PHolm = Num(ps[i])
		apart := q.Lo > 1 && !math.IsInf(float64(q.Lo), 0) || q.Hi < 1 && !math.IsInf(float64(q.Hi), 0)
		q.Significant = (apart || q.CutOff != "") && ps[i] <= alpha
		q.Better = worth(m, q.Significant, q.size(m))
		if !q.Significant && stats.MinP(len(t.xs), len(t.ys))*float64(len(tasks)) > alpha {
			q.Needed, q.PHolm = trialsNeeded(len(tasks)), Unknown
			q.Warn = Fill(texts().Runs["too-few"],
				map[string]any{"Base": len(t.xs), "New": len(t.ys), "Tasks": int64(len(tasks)), "Needed": q.Needed})
		}
		if slices.Contains(c.base.View.Lasting, m.Key) {
			q.Range, q.Test = Range{q.Value, Unknown, Unknown}, Test{P: Unknown, PHolm: Unknown}
			q.Needed, q.Warn = 0, texts().Runs["lasting"]
		}
	}
}

// trialsNeeded returns how many trials on each side are needed so that one of so many comparisons
// can be significant.
func trialsNeeded(comparisons int) int {
	n := 1
	for stats.MinP(n, n)*float64(comparisons) > alpha {
		n++
	}
	return n
}

// finite returns the values of rows; censored ones are infinite, or 0 for a rate.
func finite(rows []Row, m record.Metric) (xs []float64) {
	for _, r := range rows {
		if r.Censored {
			r.Value = max(beyond(m), 0)
		}
		xs = append(xs, r.Value)
	}
	return xs
}

// leastRanged is the smallest sample whose range is used as an interval: it covers the median in
// 87.5 % of cases.
const leastRanged = 4

// unpaired returns the ratio of medians of unpaired samples. If they are too few for an interval
// but a rank test can be significant, the range of the ratios of their values is used instead.
func unpaired(xs, ys []float64, cutOff string) RunRatio {
	i := stats.Ratio(xs, ys, Confidence)
	if !i.Bounded() && !math.IsNaN(i.Mid) && i.Conf >= 1 && min(len(xs), len(ys)) >= leastRanged &&
		stats.MinP(len(xs), len(ys)) <= alpha {
		lo, hi := slices.Min(xs)/slices.Max(ys), slices.Max(xs)/slices.Min(ys)
		if lo >= 0 && hi >= lo && !math.IsInf(hi, 0) {
			i.Lo, i.Hi = lo, hi
			i.Warn = Fill(texts().Runs["range"], map[string]any{"Base": len(ys), "New": len(xs)})
		}
	}
	q := RunRatio{Range: Range{Num(i.Mid), Num(i.Lo), Num(i.Hi)}, Test: Test{P: Num(stats.MannWhitney(xs, ys))},
		Warn: i.Warn, CutOff: cutOff}
	if cutOff != "" {
		q.Range, q.Warn = NoRange, ""
	}
	return q
}

// never names the run, "new" or "base", with half or more of its trials censored while those of
// the other are not; empty: neither.
func never(news, base []Row) string {
	gone := func(rows []Row) bool { return len(rows) > 0 && 2*Censored(rows) > len(rows)-1 }
	switch {
	case gone(news) && !gone(base) && len(base) > 0:
		return "new"
	case gone(base) && !gone(news) && len(news) > 0:
		return "base"
	}
	return ""
}

// size returns the ratio, or an infinite one or 0 if one side is cut off.
func (q RunRatio) size(m record.Metric) Num {
	far := Num(max(beyond(m), 0))
	switch q.CutOff {
	case "new":
		return far
	case "base":
		return 1 / far
	}
	return q.Value
}

// worth returns 1 for an improvement, −1 for a degradation, and 0 for a change that is not
// significant or below the effect floor. Success metrics have no floor.
func worth(m record.Metric, significant bool, ratio Num) int {
	if significant && slices.Contains(successMetrics, m.Key) {
		return cmp.Compare(ratio, 1)
	}
	return direction(significant, ratio, m.Better)
}

// over combines all cells of a metric.
func (c *Comparison) over(m record.Metric) {
	first, lasting := len(c.Overall), slices.Contains(c.base.View.Lasting, m.Key)
	var ps []float64
	for k := range c.news {
		o := OverCells{New: c.New[k].Dir, Metric: m.Key}
		var xs, ys [][]float64
		for _, cell := range c.Cells {
			row, ok := cell.Metrics[m.Key]
			if !ok || row.New[k] == nil {
				continue
			}
			v := row.New[k]
			xs, ys = append(xs, v.logs()), append(ys, row.Base.logs())
			o.needed = max(o.needed, v.Ratio.Needed)
			switch {
			case v.Ratio.Needed > 0 || lasting:
				o.OpenCells++
			case !v.Ratio.Significant:
				o.SameCells++
			case v.Ratio.Better > 0:
				o.BetterCells++
			case v.Ratio.Better < 0:
				o.WorseCells++
			default:
				o.SmallCells++
			}
		}
		if len(xs) == 0 {
			continue
		}
		i, p := stats.RunsRatio(xs, ys, Confidence)
		if lasting {
			i.Lo, i.Hi, i.Warn, p = math.NaN(), math.NaN(), texts().Runs["lasting"], math.NaN()
		}
		o.Cells, o.Range, o.P, o.Warn = i.N, rangeOf(i), Num(p), i.Warn
		ps = append(ps, p)
		c.Overall = append(c.Overall, o)
	}
	for i, p := range stats.Holm(ps) {
		o := &c.Overall[first+i]
		o.PHolm = Num(p)
		o.Significant = p <= alpha
		o.Better = worth(m, o.Significant, o.Value)
	}
}

// logs returns the logarithms of the values by block, NaN for missing ones; nil if some are not
// positive or censored.
func (s Summary) logs() []float64 {
	if s.Censored > 0 || len(s.Values) == 0 || slices.ContainsFunc(s.Values, func(x float64) bool { return !(x > 0) }) {
		return nil
	}
	row := slices.Repeat([]float64{math.NaN()}, slices.Max(s.Blocks)+1)
	for i, b := range s.Blocks {
		row[b] = math.Log(s.Values[i])
	}
	return row
}

// note adds a sentence, once.
func (c *Comparison) note(key string, data map[string]any) {
	if text := Fill(texts().Runs[key], data); !slices.Contains(c.Notes, text) {
		c.Notes = append(c.Notes, text)
	}
}

// remark adds caveats about the differences.
func (c *Comparison) remark() {
	warned := map[string]int64{}
	few, of, needed := 0, int64(0), 0
	for _, cell := range c.Cells {
		for k, v := range cell.Metrics[c.Headline].New {
			if v == nil {
				continue
			}
			if c.base.Baseline != "" && cell.base.Baseline && v.Ratio.Better != 0 {
				c.note("base-differs", map[string]any{"System": cell.System, "New": c.New[k].Dir})
			}
			switch of++; {
			case v.Ratio.Needed > 0: // the counts of trials are in each ratio's warning
				few, needed = few+1, v.Ratio.Needed
			case v.Ratio.Warn != "":
				warned[v.Ratio.Warn]++
			}
		}
	}
	if few > 0 {
		c.note("few-in", map[string]any{"Few": few, "Of": of, "Needed": needed})
	}
	for _, w := range slices.Sorted(maps.Keys(warned)) {
		c.note("warned", map[string]any{"Warn": w, "Count": warned[w]})
	}
	untested := map[string][]string{} // metrics by reason
	for _, o := range c.Overall {
		if o.Warn != "" {
			m, _ := c.base.Frame.Metric(o.Metric)
			untested[o.Warn] = append(untested[o.Warn], fmt.Sprintf("%s (%d of %d cells)", m.Name, o.Cells, o.compared()))
		}
	}
	for _, w := range slices.Sorted(maps.Keys(untested)) {
		c.note("untested", map[string]any{"Metrics": untested[w], "Warn": w})
	}
	c.note("apart", nil)
}

// verdict summarises the headline over all cells for each run.
func (c *Comparison) verdict() Verdict {
	m, _ := c.base.Frame.Metric(c.Headline)
	type part struct{ Run, Shows string }
	var parts []part
	tone := Good
	for _, o := range c.Overall {
		if o.Metric != c.Headline {
			continue
		}
		run := "new"
		if len(c.New) > 1 {
			run = o.New
		}
		key, grave := o.shows()
		tone = graver(tone, grave)
		parts = append(parts, part{run,
			Fill(texts().Runs[key], map[string]any{"Better": o.BetterCells, "Worse": o.WorseCells,
				"Open": o.OpenCells, "Cells": o.compared(), "Ratio": o.Value, "Needed": o.needed})})
	}
	if parts == nil {
		tone = Neutral
	}
	return Verdict{Fill(texts().Runs["verdict"], map[string]any{"Metric": m.Name, "Parts": parts}), tone}
}

func (o *OverCells) compared() int {
	return o.BetterCells + o.WorseCells + o.SmallCells + o.SameCells + o.OpenCells
}

// shows returns the key of the sentence about a new run, from a metric over all cells.
func (o *OverCells) shows() (key string, tone Tone) {
	switch {
	case o.BetterCells > 0 && o.WorseCells > 0:
		return "mixed", Warn
	case o.WorseCells > 0:
		return "worse", Bad
	case o.BetterCells > 0:
		return "better", Good
	case o.Better < 0:
		return "slower", Bad
	case o.SmallCells > 0:
		return "small", Good
	case o.Better == 0 && o.OpenCells == o.compared():
		return "few", Neutral
	case o.Better > 0:
		return "faster", Good
	case o.OpenCells > 0: // which may differ
		return "same", Neutral
	}
	return "same", Good
}

// DecideGates decides gates for each new run, after those of the run's own plan.
func (c *Comparison) DecideGates(rules []string) error {
	names := c.base.gateNames(true)
	for _, r := range c.news {
		names.Cells = append(names.Cells, r.gateNames(true).Cells...)
	}
	var all []Ruling
	for k, r := range c.news {
		for _, text := range r.Frame.Plan.Experiment.Gates {
			if !slices.Contains(rules, text) {
				all = append(all, r.planGate(text, c.New[k].Dir, c.against(k)))
			}
		}
	}
	asked, err := hold(rules, names, func(rule gate.Rule) (each []Ruling) {
		for k, r := range c.news {
			each = append(each, r.decide(rule, c.New[k].Dir, c.against(k)))
		}
		return each
	})
	if err != nil {
		return err
	}
	c.Gates = append(all, asked...)
	return nil
}

// against returns the base run's cells for those of a new run.
func (c *Comparison) against(k int) *baseCells {
	a := &baseCells{run: c.base, of: map[*Cell]*Cell{}}
	compared := map[*Cell]bool{}
	for _, row := range c.Cells {
		if row.news[k] != nil {
			a.of[row.news[k]], compared[row.base] = row.base, true
		}
	}
	for _, b := range c.base.Cells {
		if compared[b] {
			continue
		}
		a.gone = append(a.gone, CellRuling{System: b.System, Where: c.base.Frame.Layout.Where(b), State: GateInconclusive,
			Range: NoRange, cell: b, Unit: "×", Why: "the new run has no such cell with the same settings"})
	}
	return a
}
