package overhead

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// fit is the cost of an operation, t = A + R·RTT + B·size, over the valid trials without
// concurrent operations.
type fit struct {
	task
	trials    []*analysis.Trial
	from, to  float64                // smallest and largest size of them; infinite without trials
	cells     map[*analysis.Cell]int // number of each of the trials' cells
	model     stats.CostModel        // Points 0: nothing was fitted
	notes     []string
	tested    bool // there are enough trials and cells to test the model
	misfit    float64
	lineShare analysis.Value
	inline    inline
}

// timed returns the valid trials of a task whose bytes cross the link, and how many more took
// longer than their deadline. If no size crosses the link, it returns the trials of all sizes.
func (r *reading) timed(k task, in inline) (trials []*analysis.Trial, late int) {
	for _, row := range r.Rows {
		c := row.Trial.Info
		if row.Metric != "duration_p50" || row.Entity != "" || !row.Trial.Valid() || !sequential(c) || taskOf(c) != k ||
			!in.whole && size(c) <= in.stays {
			continue
		}
		if row.Censored {
			late++
		} else if row.Value > 0 {
			trials = append(trials, row.Trial)
		}
	}
	return trials, late
}

// fit fits the trials of a task. It returns nil if the task has no valid trial.
func (r *reading) fit(k task) *fit {
	f := &fit{task: k, cells: map[*analysis.Cell]int{}, from: math.Inf(1), to: math.Inf(-1), misfit: math.NaN(),
		lineShare: analysis.Text(""), inline: r.inlines[k]}
	late := 0
	if f.trials, late = r.timed(k, f.inline); len(f.trials)+late == 0 {
		if !(f.inline.stays > 0) {
			return nil
		}
		f.note("only sizes that do not cross the link have valid trials")
		return f
	}
	checked := func(t *analysis.Trial) bool { _, ok := r.checks[t.ID]; return ok }
	all := len(f.trials)
	if slices.ContainsFunc(f.trials, checked) { // else fit without round trips
		f.trials = slices.DeleteFunc(f.trials, func(t *analysis.Trial) bool { return !checked(t) })
	}
	var points []stats.CostPoint
	for _, t := range f.trials {
		if _, ok := f.cells[t.Info]; !ok {
			f.cells[t.Info] = len(f.cells)
		}
		f.from, f.to = min(f.from, size(t.Info)), max(f.to, size(t.Info))
		points = append(points, stats.CostPoint{RTT: r.checks[t.ID].RTT, Size: size(t.Info),
			Time: t.Metrics["duration_p50"], Cell: f.cells[t.Info], Block: t.Block})
	}
	var err error
	if f.model, err = stats.FitCost(points, analysis.Confidence); err != nil {
		f.note(strings.TrimPrefix(err.Error(), "cost: "))
		return f
	}
	f.judge()
	f.noteTrials(late, "took longer than the deadline and")
	f.noteTrials(all-len(f.trials), "without a measured round trip")
	f.lineShare = r.lineShare(f)
	if f.lineShare.Lo > 1+analysis.EffectFloor {
		f.note("1/B is more than the link carries: these sizes cannot separate bytes from round trips")
	}
	return f
}

// judge notes which parameters the trials cannot separate, and computes the misfit.
func (f *fit) judge() {
	m, parameters := f.model, 3
	f.note(m.Why)
	fixedTrip, fixedSize := math.IsNaN(m.R.Mid), math.IsNaN(m.B.Mid)
	switch {
	case fixedTrip && fixedSize:
		parameters = 1
		f.note("neither the round trip nor the size varied: A cannot be separated")
	case fixedTrip:
		parameters = 2
		f.note("the round trip did not vary: A contains the round trips")
	case fixedSize:
		parameters = 2
		f.note("the size did not vary: A contains the bytes")
	}
	f.tested = len(f.trials) > len(f.cells) && len(f.cells) > parameters
	residuals := make([][]float64, len(f.cells))
	for i, t := range f.trials {
		residuals[f.cells[t.Info]] = append(residuals[f.cells[t.Info]], m.Residual[i])
	}
	f.misfit = 0
	for _, xs := range residuals {
		f.misfit = max(f.misfit, math.Abs(stats.Median(xs)))
	}
}

func (f *fit) note(s string) {
	if s != "" {
		f.notes = append(f.notes, s)
	}
}

func (f *fit) noteTrials(n int, why string) {
	if n > 0 {
		f.note(words.Plural(int64(n), "trial", "trials") + " " + why + " could not be fitted")
	}
}

// rate returns 1/B; bounds are unknown where B may be 0.
func (f *fit) rate() analysis.Value {
	b := analysis.Estimate(f.model.B)
	inverse := func(v analysis.Num) analysis.Num {
		if !(v > 0) || !v.Known() {
			return analysis.Unknown
		}
		return 1 / v
	}
	return analysis.Value{Number: inverse(b.Number), Lo: inverse(b.Hi), Hi: inverse(b.Lo)}
}

// lineShare returns the rate of file bytes as a share of the rate at which the link can carry
// them: its measured rate, divided for writes by the expansion at the largest size.
func (r *reading) lineShare(f *fit) analysis.Value {
	var rates, expansions []float64
	for _, t := range f.trials {
		if l := r.checks[t.ID]; l.WantRate > 0 && l.Rate > 0 {
			rates = append(rates, l.Rate/8)
		}
		if x := t.Metrics["expansion"]; size(t.Info) == f.to && x > 1 && experiment.Writes(f.operation) {
			expansions = append(expansions, x)
		}
	}
	if len(rates) == 0 || f.inline.whole {
		return analysis.Text("")
	}
	line := stats.Median(rates)
	if len(expansions) > 0 {
		line /= stats.Median(expansions)
	}
	v, scale := f.rate(), analysis.Num(1/line)
	return analysis.Value{Number: v.Number * scale, Lo: v.Lo * scale, Hi: v.Hi * scale}
}

func (f *fit) rounds() bool { return !math.IsNaN(f.model.R.Mid) }

// base returns the baseline's fit to compare f with, or nil. It is the fit of the same operation
// or, for a write that the baseline lacks, of put, which moves the same bytes.
func (r *reading) base(f *fit, fits map[task]*fit) *fit {
	base := fits[task{r.Baseline, f.operation, f.connections}]
	if (base == nil || base.model.Points == 0) && experiment.Writes(f.operation) {
		base = fits[task{r.Baseline, "put", f.connections}]
	}
	if base == nil || base.model.Points == 0 || f.system == r.Baseline || f.model.Points == 0 || f.inline.whole ||
		base.inline.whole || base.rounds() != f.rounds() { // only models with the same terms can be compared
		return nil
	}
	return base
}

// byBlock returns a function for the effect of a block: by how much its trials took longer than
// their cells' medians, as a mean of logarithms relative to the mean of all blocks; NaN for a
// block without trials. Residuals are relative to their cell's median, so that a cell's misfit
// is no effect of the blocks that have the cell.
func (f *fit) byBlock() func(block int) float64 {
	all := map[*analysis.Cell][]float64{}
	logs := make([]float64, len(f.trials))
	for i, t := range f.trials {
		logs[i] = math.NaN()
		if x := f.model.Residual[i]; x > -1 { // a fit may predict a negative time
			logs[i] = math.Log1p(x)
			all[t.Info] = append(all[t.Info], logs[i])
		}
	}
	blocks := map[int][]float64{}
	for i, t := range f.trials {
		if x := logs[i]; !math.IsNaN(x) {
			blocks[t.Block] = append(blocks[t.Block], x-stats.Median(all[t.Info]))
		}
	}
	var means []float64
	for _, b := range slices.Sorted(maps.Keys(blocks)) { // sums depend on the order
		means = append(means, stat.Mean(blocks[b], nil))
	}
	mean := stat.Mean(means, nil)
	return func(b int) float64 { return stat.Mean(blocks[b], nil) - mean }
}

// against returns an operation's time divided by the prediction of the baseline's fit for the
// same absolute bytes and round trip: the geometric mean over cells of each cell's median.
// The interval is over blocks, corrected for the baseline's own effect of the block.
func (r *reading) against(f *fit, fits map[task]*fit) analysis.Value {
	base := r.base(f, fits)
	if base == nil {
		return analysis.Text("")
	}
	off := base.byBlock()
	ratios := make([][]float64, len(f.cells)) // by cell
	logs := make([][]float64, len(f.cells))   // by cell and block, less the baseline's effect of the block
	for _, t := range f.trials {
		expansion := 1.0
		if x := t.Metrics["expansion"]; experiment.Writes(f.operation) && x > 0 {
			expansion = x
		}
		want := base.model.Predict(r.checks[t.ID].RTT, expansion*size(t.Info))
		if !(want > 0) {
			continue
		}
		ratio := t.Metrics["duration_p50"] / want
		i := f.cells[t.Info]
		for len(logs[i]) <= t.Block {
			logs[i] = append(logs[i], math.NaN())
		}
		logs[i][t.Block] = math.Log(ratio) - off(t.Block)
		ratios[i] = append(ratios[i], ratio)
	}
	none := func(xs []float64) bool { return len(xs) == 0 }
	if logs, ratios = slices.DeleteFunc(logs, none), slices.DeleteFunc(ratios, none); len(ratios) == 0 {
		return analysis.Text("")
	}
	var centres []float64
	for _, xs := range ratios {
		centres = append(centres, math.Log(stats.Median(xs)))
	}
	v, _, _ := analysis.Pooled(logs, centres, 1)
	return v
}

// noisyMisfit is the misfit above which a model that was not rejected is not confirmed either: the
// trials are too noisy.
const noisyMisfit = 0.25

func (f *fit) holds(fits int) analysis.Value {
	switch {
	case f.model.Points == 0:
		return analysis.Text("no fit")
	case !f.model.Holds && !f.tested, f.model.Holds && f.misfit > noisyMisfit:
		return analysis.Text("unknown")
	case f.model.Holds:
		return analysis.Text("yes")
	}
	no := analysis.Text("no")
	if f.misfit >= misfit && f.model.P <= misfitAlpha/float64(fits) {
		no.Tone = analysis.Warn
	}
	return no
}

// costTable returns the cost of every operation.
func (r *reading) costTable() analysis.Table {
	t := r.View.Head("cost")
	fits, order := map[task]*fit{}, []*fit{}
	for _, k := range r.tasks() {
		if f := r.fit(k); f != nil {
			fits[k], order = f, append(order, f)
		}
	}
	for _, f := range order {
		m, none := f.model, analysis.Text("")
		a, rounds, b, rate := none, none, none, none
		if m.Points > 0 {
			rounds, b, rate = analysis.Estimate(m.R), analysis.Estimate(m.B), f.rate()
			if f.rounds() || b.Number.Known() { // else A would be the whole duration
				a = analysis.Estimate(m.A)
			}
		}
		t.Add(f.system, f.operation, f.connections, a, rounds, b, rate, f.lineShare, r.against(f, fits), f.from, f.to,
			f.inline.stays, f.misfit, float64(len(f.trials)), f.holds(len(fits)), strings.Join(f.notes, "; "))
	}
	return t
}

// phase is one phase of an operation on objects of a size.
type phase struct {
	task
	size float64
	name string
}

// phaseTable returns the time of each phase of an operation as reported by the system, and its
// number of round trips: the slope of its time over the measured round trip.
func (r *reading) phaseTable() analysis.Table {
	points := map[phase][]stats.CostPoint{} // one of each trial; an unknown round trip is NaN
	var order []phase
	for _, t := range r.Trials {
		if !t.Valid() || !sequential(t.Info) {
			continue
		}
		rtt := math.NaN()
		if l, ok := r.checks[t.ID]; ok {
			rtt = l.RTT
		}
		for _, d := range t.Details {
			if d.Kind != record.DetailPhase {
				continue
			}
			k := phase{taskOf(t.Info), size(t.Info), d.Name}
			if points[k] == nil {
				order = append(order, k)
			}
			points[k] = append(points[k], stats.CostPoint{RTT: rtt, Time: d.Value, Block: t.Block})
		}
	}
	tasks := r.tasks()
	slices.SortStableFunc(order, func(a, b phase) int {
		return cmp.Or(slices.Index(tasks, a.task)-slices.Index(tasks, b.task), cmp.Compare(a.size, b.size))
	})
	t := r.View.Head("phases")
	for _, k := range order {
		rtt, took, rounds := phaseTimes(points[k])
		t.Add(k.system, k.operation, k.connections, k.size, k.name, rtt, took, rounds, float64(len(points[k])))
	}
	return t
}

// phaseTimes returns the shortest round trip, the time of a phase there, and the number of round
// trips.
func phaseTimes(points []stats.CostPoint) (rtt, took float64, rounds analysis.Value) {
	var at, first, slopes []float64
	shortest := math.Inf(1)
	rtts, times := map[int][]float64{}, map[int][]float64{} // by block
	for _, p := range points {
		if !math.IsNaN(p.RTT) {
			rtts[p.Block], times[p.Block] = append(rtts[p.Block], p.RTT), append(times[p.Block], p.Time)
			shortest = min(shortest, p.RTT)
		}
	}
	for _, p := range points {
		if len(rtts) == 0 || p.RTT <= shortest+leastRTT/2 {
			at, first = append(at, p.RTT), append(first, p.Time)
		}
	}
	for b, x := range rtts { // by block, since a disturbance affects a whole block
		if slices.Max(x)-slices.Min(x) > leastRTT { // else the block lacks long delays
			slopes = append(slopes, stats.Slope(x, times[b]))
		}
	}
	rounds = analysis.Estimate(stats.MedianCI(slices.DeleteFunc(slopes, math.IsNaN), analysis.Confidence))
	return stats.Median(at), stats.Median(first), rounds
}
