package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// RunComparison is what runs say against a base run. Its JSON is that of
// `plimsoll compare --json` (docs/compare.md).
type RunComparison struct {
	Format   int             `json:"format"`
	Scenario string          `json:"scenario"`
	Headline string          `json:"headline"` // the metric that comes first
	Base     ComparedRun     `json:"base"`
	New      []ComparedRun   `json:"new"`
	Differs  []Difference    `json:"differs"`
	Metrics  []record.Metric `json:"metrics"` // the headline first
	Overall  []OverCells     `json:"overall"`
	Cells    []ComparedCell  `json:"cells"`
	Unlike   []UnlikeCell    `json:"unlike"`
	Only     []OnlyCell      `json:"only"`
	Notes    []string        `json:"notes"`
	Gates    []Ruling        `json:"gates,omitempty"`

	base *Report
	news []*Report
	full []string // metrics whose cells are all shown
}

// ComparedRun is one of the runs.
type ComparedRun struct {
	Dir      string `json:"dir"`
	Plimsoll string `json:"plimsoll,omitempty"`
	Run      Run    `json:"run"`
}

// ComparedCell is a cell that the base run and at least one other have.
type ComparedCell struct {
	System  string                    `json:"system"`
	Where   string                    `json:"where"`
	Factors []Factor                  `json:"factors"`
	Metrics map[string]ComparedMetric `json:"metrics"`

	base *Cell
	news []*Cell // nil: that run does not have it
}

// ComparedMetric is a metric of a cell. New has one entry for each new run, null
// where it does not have the cell or the metric.
type ComparedMetric struct {
	Base Summary          `json:"base"`
	New  []*ComparedValue `json:"new"`
}

// ComparedValue is a metric of a new run's cell, and its ratio to the base run's.
type ComparedValue struct {
	Summary
	Ratio  RunRatio     `json:"ratio"`
	Spread SpreadChange `json:"spread"`
}

// RunRatio is new over base: the ratio of the medians, with an interval
// of samples that are not paired; Warn says where a range stands in for it.
type RunRatio struct {
	Value Num  `json:"value"`
	Lo    Num  `json:"lo"`
	Hi    Num  `json:"hi"`
	P     Num  `json:"p"`      // Mann–Whitney over trials
	PHolm Num  `json:"p_holm"` // over the cells and new runs of this metric
	Shown bool `json:"shown"`  // false: a difference is not shown ("~")
	Worth int  `json:"better"` // when shown and above the effect floor: 1 better, -1 worse, else 0
	// Never says of which run, "new" or "base", half or more of the trials never came
	// to the number: there is no ratio then, and the rank test alone shows.
	Never string `json:"never,omitempty"`
	Warn  string `json:"warn,omitempty"`

	ranged bool // Lo and Hi are a range, see unpairedRatio
}

// SpreadChange says how much farther the new run's trials scatter around their
// median, relative to it, than the base run's.
type SpreadChange struct {
	Value Num  `json:"value"` // ratio of the median absolute deviations of the logarithms
	P     Num  `json:"p"`
	PHolm Num  `json:"p_holm"`
	Shown bool `json:"shown"`
}

// OverCells is a metric over all cells that a new run and the base run have: the
// geometric mean of the cells' ratios.
type OverCells struct {
	New    string `json:"new"` // directory of the run
	Metric string `json:"metric"`
	Cells  int    `json:"cells"` // in the mean
	Value  Num    `json:"value"`
	Lo     Num    `json:"lo"`
	Hi     Num    `json:"hi"`
	P      Num    `json:"p"`
	PHolm  Num    `json:"p_holm"` // over the new runs
	Shown  bool   `json:"shown"`
	Worth  int    `json:"better"`
	// Cells by themselves.
	Better   int    `json:"cells_better"`
	Worse    int    `json:"cells_worse"`
	Small    int    `json:"cells_below_floor"` // shown, and below the effect floor
	NotShown int    `json:"cells_not_shown"`
	Spread   int    `json:"cells_spread_changed"`
	Warn     string `json:"warn,omitempty"` // why nothing is claimed

	outside bool // Value is not among the cells' ratios
}

// OnlyCell is a cell that not both of two runs have.
type OnlyCell struct {
	System string `json:"system"`
	Where  string `json:"where"`
	In     string `json:"in"`     // the run that has it
	NotIn  string `json:"not_in"` // the one that does not
}

// UnlikeCell is a cell of the same system and factors as in the base run with
// other settings.
type UnlikeCell struct {
	System   string    `json:"system"`
	Where    string    `json:"where"`
	New      string    `json:"new"`
	Settings []Setting `json:"settings"`
	Compared bool      `json:"compared"` // all the same, because that was asked for
}

// Setting is one that differs.
type Setting struct {
	Path string `json:"path"`
	Base string `json:"base"`
	New  string `json:"new"`
}

// RunOptions say what to compare.
type RunOptions struct {
	Metrics []string // besides those of the scenario; their cells are all shown
	Unlike  bool     // cells whose settings differ, too
	Sets    []string // --set arguments by which the trials of all runs are judged again
}

// CompareRuns compares runs with a base run. It reads what [Build] reads, and
// concludes nothing from a run by itself.
func CompareRuns(base *record.Reader, news []*record.Reader, o RunOptions) (*RunComparison, error) {
	var ins []*input
	var dirs []string
	for _, run := range append([]*record.Reader{base}, news...) {
		in, err := gather(run, false, o.Sets...)
		if err != nil {
			return nil, err
		}
		ins, dirs = append(ins, in), append(dirs, filepath.Clean(run.Dir()))
	}
	return compareInputs(ins, dirs, o)
}

// compareInputs compares what was read of the runs, the base run first.
func compareInputs(ins []*input, dirs []string, o RunOptions) (*RunComparison, error) {
	c := &RunComparison{Format: Format, Differs: []Difference{}, Unlike: []UnlikeCell{}, Only: []OnlyCell{}, Notes: []string{},
		Overall: []OverCells{}, Cells: []ComparedCell{}, Metrics: []record.Metric{}}
	for i, in := range ins {
		r := summarised(in)
		if in.err != nil {
			return nil, in.err
		}
		r.state(in)
		r.checkLinks(in)
		side := ComparedRun{Dir: dirs[i], Plimsoll: r.EnvironmentOf("plimsoll"), Run: r.Run}
		if i == 0 {
			c.Base, c.base = side, r
			continue
		}
		if r.Scenario != c.base.Scenario {
			return nil, &OtherScenarioError{dirs[0], c.base.Scenario, dirs[i], r.Scenario}
		}
		c.New, c.news = append(c.New, side), append(c.news, r)
	}
	c.Scenario, c.Headline = c.base.Scenario, c.base.headline
	if err := c.choose(o.Metrics); err != nil {
		return nil, err
	}
	c.match(o.Unlike)
	c.differences()
	c.measure()
	c.remark()
	return c, nil
}

// OtherScenarioError is a new run of another scenario than the base run.
type OtherScenarioError struct{ Base, BaseScenario, New, NewScenario string }

func (e *OtherScenarioError) Error() string {
	return fmt.Sprintf("%s is of the scenario %s and %s of %s: they have nothing in common to compare", e.New, e.NewScenario, e.Base, e.BaseScenario)
}

// choose fills the metrics that are compared.
func (c *RunComparison) choose(more []string) error {
	c.full = append([]string{c.Headline}, more...)
	wanted := slices.Concat(c.full, c.base.lens.compared, successMetrics)
	for _, key := range more {
		if _, ok := c.base.metric(key); !ok && key != allMetrics {
			return &UnknownMetricError{Key: key, Known: c.base.Metrics}
		}
		if key == allMetrics {
			c.full = nil
			for _, m := range c.base.Metrics {
				c.full = append(c.full, m.Key)
			}
			wanted = append(wanted, c.full...)
		}
	}
	for _, key := range wanted {
		if m, ok := c.base.metric(key); ok && !slices.Contains(c.Metrics, m) && c.measured(key) {
			c.Metrics = append(c.Metrics, m)
		}
	}
	if len(c.Metrics) == 0 {
		c.Notes = append(c.Notes, "No metric has a valid trial in the base run and in a new one: there is nothing to compare. plimsoll report tells why trials are not valid.")
	}
	return nil
}

// allMetrics stands for all metrics that a run has.
const allMetrics = "all"

// measured reports whether the base run and a new one have the metric, or trials
// that never came to it.
func (c *RunComparison) measured(key string) bool {
	has := func(r *Report) bool {
		return slices.ContainsFunc(r.Cells, func(cell Cell) bool {
			_, ok := cell.summary(record.Metric{Key: key})
			return ok
		})
	}
	return has(c.base) && slices.ContainsFunc(c.news, has)
}

// UnknownMetricError is a metric that a run does not have.
type UnknownMetricError struct {
	Key   string
	Known []record.Metric
}

func (e *UnknownMetricError) Error() string {
	return fmt.Sprintf("the run has no metric %q", e.Key)
}

// Hint names the metrics that there are.
func (e *UnknownMetricError) Hint() string {
	var keys []string
	for _, m := range e.Known {
		keys = append(keys, m.Key)
	}
	return "metrics: " + strings.Join(keys, ", ")
}

// runTask is one comparison, to be computed beside others.
type runTask struct {
	metric record.Metric
	xs, ys []float64 // base, new
	value  *ComparedValue
}

// measure compares all cells in all metrics.
func (c *RunComparison) measure() {
	type family struct {
		metric record.Metric
		tasks  []runTask
	}
	var families []family
	var all []runTask
	for _, m := range c.Metrics {
		f := family{metric: m}
		for i := range c.Cells {
			cell := &c.Cells[i]
			base, ok := cell.base.summary(m)
			if !ok {
				continue
			}
			row := ComparedMetric{Base: base, New: make([]*ComparedValue, len(c.news))}
			for k, other := range cell.news {
				if other == nil {
					continue
				}
				s, ok := other.summary(m)
				if !ok {
					continue
				}
				row.New[k] = &ComparedValue{Summary: s}
				f.tasks = append(f.tasks, runTask{m, base.all(m), s.all(m), row.New[k]})
			}
			cell.Metrics[m.Key] = row
		}
		families, all = append(families, f), append(all, f.tasks...)
	}
	together(all, func(t runTask) { t.compare() })
	for _, f := range families {
		judgeFamily(f.metric, f.tasks)
		if c.base.lasting(f.metric) {
			for _, t := range f.tasks {
				t.value.single()
			}
		}
	}
	for _, m := range c.Metrics {
		c.over(m)
	}
}

// together does all tasks, as many at a time as there are CPUs.
func together(tasks []runTask, do func(runTask)) {
	var wg sync.WaitGroup
	next := make(chan runTask)
	for range min(runtime.GOMAXPROCS(0), len(tasks)) {
		wg.Go(func() {
			for t := range next {
				do(t)
			}
		})
	}
	for _, t := range tasks {
		next <- t
	}
	close(next)
	wg.Wait()
}

// all are the values of all trials; those known only to be beyond what was
// watched are as far off as there is.
func (s Summary) all(m record.Metric) []float64 {
	xs := slices.Clone(s.values)
	for range s.beyond {
		xs = append(xs, farthest(m))
	}
	return xs
}

// logs are the logarithms of the values by block, NaN where there is none; nil where
// some are not positive or only known to be beyond what was watched.
func (s Summary) logs() []float64 {
	if s.beyond > 0 || slices.ContainsFunc(s.values, func(x float64) bool { return !(x > 0) }) {
		return nil
	}
	row := s.byBlock(nil)
	for i, x := range row {
		row[i] = math.Log(x)
	}
	return row
}

// summary is a cell's metric over valid trials, also where half or more of them
// never came to it.
func (c *Cell) summary(m record.Metric) (Summary, bool) {
	if s, ok := c.Metrics[m.Key]; ok {
		return s, true
	}
	s, ok := c.never[m.Key]
	return s, ok
}

// farthest is the value that stands for one known only to be beyond what was
// watched: infinite, or 0 for a speed that was lower than any.
func farthest(m record.Metric) float64 { return max(side(m), 0) }

// never says that half or more of the trials never came to a number while those of
// the other run did: 1 when they are those of xs, -1 when of ys, else 0. There is
// then no ratio of medians, however different the two are.
func never(xs, ys []float64, m record.Metric) int {
	gone := func(all []float64) bool { return len(all) > 0 && stats.Median(all) == farthest(m) }
	switch {
	case gone(xs) && !gone(ys) && len(ys) > 0:
		return 1
	case gone(ys) && !gone(xs) && len(xs) > 0:
		return -1
	}
	return 0
}

// compare fills what one comparison says by itself.
func (t runTask) compare() {
	i, ranged := unpairedRatio(t.ys, t.xs)
	q := RunRatio{Value: Num(i.Mid), Lo: Num(i.Lo), Hi: Num(i.Hi), P: Num(stats.MannWhitney(t.ys, t.xs)), PHolm: unknown, Warn: i.Warn, ranged: ranged}
	switch never(t.ys, t.xs, t.metric) {
	case 1:
		q.Never = "new"
	case -1:
		q.Never = "base"
	}
	if q.Never != "" {
		q.Value, q.Lo, q.Hi, q.Warn = unknown, unknown, unknown, ""
	}
	t.value.Ratio = q
	t.value.Spread = SpreadChange{Value: Num(stats.SpreadRatio(t.ys, t.xs)), P: Num(stats.SpreadP(t.ys, t.xs)), PHolm: unknown}
}

// spreadFloor is the smallest ratio of spreads that is spoken of, and spreadAlpha
// the level at which it is shown: [stats.SpreadP] errs somewhat too often.
const (
	spreadFloor = 1.5
	spreadAlpha = alpha / 2
)

// Where a spread is not spoken of. Rank tests see how often values scatter
// farther, not how far: hardly any scatter, and values that come in steps, as the
// rates of a few operations do, make ratios of hundreds.
const (
	spreadLeast = 0.02  // of the run that scatters more
	stepAlike   = 0.005 // values as near as this are on one step
	stepApart   = 0.05  // steps are farther apart than this
	stepsMost   = 3
)

// spreadSpeaks reports whether a spread of these values is worth a word.
func spreadSpeaks(xs, ys []float64) bool {
	return max(stats.LogSpread(xs), stats.LogSpread(ys)) >= spreadLeast && !inSteps(xs) && !inSteps(ys)
}

// inSteps reports whether values lie on two or three levels that are far apart.
func inSteps(xs []float64) bool {
	sorted := slices.Sorted(slices.Values(xs))
	steps := 1
	for i := 1; i < len(sorted); i++ {
		switch gap := math.Log(sorted[i] / sorted[i-1]); {
		case gap > stepApart:
			steps++
		case gap > stepAlike:
			return false
		}
	}
	return steps > 1 && steps <= stepsMost && len(xs) > steps
}

// judgeFamily says what is shown among the comparisons of one metric: by the rank
// test after Holm's correction, with an interval that agrees. Unlike within a run,
// nothing is shown by a single comparison where too few trials forbid the
// correction: here there is always the mean over all cells.
func judgeFamily(m record.Metric, tasks []runTask) {
	var ps, spreads []float64
	for _, t := range tasks {
		ps = append(ps, float64(t.value.Ratio.P))
		spreads = append(spreads, float64(t.value.Spread.P))
	}
	ps, spreads = stats.Holm(ps), stats.Holm(spreads)
	for i, t := range tasks {
		q := &t.value.Ratio
		q.PHolm = Num(ps[i])
		// An end that is not known does not exclude 1.
		apart := q.Lo > 1 && !math.IsInf(float64(q.Lo), 0) || q.Hi < 1 && !math.IsInf(float64(q.Hi), 0)
		q.Shown = (apart || q.Never != "") && ps[i] <= alpha
		q.Worth = worth(m, q.Shown, q.value(m))
		if least := stats.MinP(len(t.xs), len(t.ys)); least > alpha {
			q.Warn = fmt.Sprintf("%d and %d trials can show no difference, however large: 5 and 5 can", len(t.xs), len(t.ys))
		} else if least*float64(len(tasks)) > alpha {
			q.Warn = fmt.Sprintf("%d and %d trials cannot show a difference among %d comparisons", len(t.xs), len(t.ys), len(tasks))
		}
		s := &t.value.Spread
		s.PHolm = Num(spreads[i])
		s.Shown = spreads[i] <= spreadAlpha && (float64(s.Value) >= spreadFloor || float64(s.Value) <= 1/spreadFloor) && spreadSpeaks(t.xs, t.ys)
	}
}

// value is the ratio, or how far beyond all ratios it lies.
func (q RunRatio) value(m record.Metric) float64 {
	switch far := farthest(m); {
	case q.Never == "new":
		return far
	case q.Never == "base":
		return 1 / far
	}
	return float64(q.Value)
}

// successMetrics are shares of what succeeded. Every comparison has them, and they
// have no effect floor: a link's tolerance is no reason for failures.
var successMetrics = []string{"success_rate", "ok_rate"}

// worth is 1 for a change to the better, -1 to the worse, 0 for none that is shown
// or that is below the effect floor.
func worth(m record.Metric, shown bool, ratio float64) int {
	if shown && slices.Contains(successMetrics, m.Key) {
		return cmp.Compare(ratio, 1)
	}
	return direction(shown, ratio, m.Better)
}

// over takes all cells of a metric together.
func (c *RunComparison) over(m record.Metric) {
	first := len(c.Overall)
	var ps []float64
	for k := range c.news {
		o := OverCells{New: c.New[k].Dir, Metric: m.Key}
		var xs, ys [][]float64
		any := false
		least, most := Num(math.Inf(1)), Num(math.Inf(-1))
		for _, cell := range c.Cells {
			row, ok := cell.Metrics[m.Key]
			if !ok || row.New[k] == nil {
				continue
			}
			any = true
			v := row.New[k]
			xs, ys = append(xs, v.logs()), append(ys, row.Base.logs())
			if v.Ratio.Value.Known() {
				least, most = min(least, v.Ratio.Value), max(most, v.Ratio.Value)
			}
			switch {
			case !v.Ratio.Shown:
				o.NotShown++
			case v.Ratio.Worth > 0:
				o.Better++
			case v.Ratio.Worth < 0:
				o.Worse++
			default:
				o.Small++
			}
			if v.Spread.Shown {
				o.Spread++
			}
		}
		if !any {
			continue
		}
		i, p := stats.RunsRatio(xs, ys, Confidence)
		o.Cells, o.Value, o.Lo, o.Hi, o.P, o.Warn = i.N, Num(i.Mid), unknown, unknown, Num(p), i.Warn
		if i.Bounded() {
			o.Lo, o.Hi = Num(i.Lo), Num(i.Hi)
		}
		if c.base.lasting(m) {
			p = math.NaN()
			o.Lo, o.Hi, o.P = unknown, unknown, unknown
		}
		const same = 0.002 // beyond what three digits show
		o.outside = float64(o.Value) < float64(least)*(1-same) || float64(o.Value) > float64(most)*(1+same)
		ps = append(ps, p)
		c.Overall = append(c.Overall, o)
	}
	for i, p := range stats.Holm(ps) {
		o := &c.Overall[first+i]
		o.PHolm = Num(p)
		o.Shown = p <= alpha
		o.Worth = worth(m, o.Shown, float64(o.Value))
	}
}

// remark says what to know before a difference is believed.
func (c *RunComparison) remark() {
	for _, cell := range c.Cells {
		if !cell.base.Baseline {
			continue
		}
		for k, v := range cell.Metrics[c.Headline].New {
			if v != nil && v.Ratio.Worth != 0 {
				c.Notes = append(c.Notes, fmt.Sprintf("%s, the baseline, itself differs in %s: what changed may be the machine or its links, for all systems alike.", cell.System, c.New[k].Dir))
			}
		}
	}
	slices.Sort(c.Notes)
	c.Notes = slices.Compact(c.Notes)
	warned := map[string]int{}
	for _, cell := range c.Cells {
		for _, v := range cell.Metrics[c.Headline].New {
			if v != nil && v.Ratio.Warn != "" && (!v.Ratio.Shown || v.Ratio.ranged) {
				warned[v.Ratio.Warn]++
			}
		}
	}
	for _, m := range c.Metrics {
		if c.base.lasting(m) {
			c.Notes = append(c.Notes, capital(m.Name)+": "+lastingWords+".")
		}
		n := 0
		for _, cell := range c.Cells {
			row := cell.Metrics[m.Key]
			if row.Base.beyond > 0 || slices.ContainsFunc(row.New, func(v *ComparedValue) bool { return v != nil && v.beyond > 0 }) {
				n++
			}
		}
		if n > 0 {
			c.Notes = append(c.Notes, fmt.Sprintf("%s: in %s some trials never came to it. They count as worse than any in medians and tests, and have no place in the mean over all cells.", capital(m.Name), plural(int64(n), "cell", "cells")))
		}
	}
	for _, w := range slices.Sorted(maps.Keys(warned)) {
		c.Notes = append(c.Notes, capital(w)+" ("+plural(int64(warned[w]), "comparison", "comparisons")+").")
	}
	c.Notes = append(c.Notes, "The runs were not interleaved: a difference between runs includes what differed between their times. To be sure, make both systems of one experiment (docs/compare.md).")
}
