package overhead

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// fit is what an operation costs, t = A + R·RTT + B·size, over the valid trials with one
// operation under way at a time.
type fit struct {
	task
	trials    []*analysis.Trial
	model     stats.CostModel // Points 0: nothing was fitted
	notes     []string
	tested    bool // there are trials and cells enough to say whether the model holds
	misfit    float64
	lineShare analysis.Value
	inline    *inline
}

// fits are those of all operations.
func (r *reading) fits() []*fit {
	var all []*fit
	for _, k := range r.tasks() {
		if f := r.fit(k); f != nil {
			all = append(all, f)
		}
	}
	return all
}

// timed are the valid trials of a task whose sizes cross the link, and how many took longer
// than their deadline. Where all sizes stay, all count.
func (r *reading) timed(k task, in *inline) (trials []*analysis.Trial, late int) {
	for _, row := range r.Rows {
		c := row.Trial.Info
		if row.Metric != "duration_p50" || row.Entity != "" || !row.Trial.Valid() || !sequential(c) || taskOf(c) != k ||
			in != nil && !in.whole && size(c) <= in.stays {
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

// fit is nil where no trial of a task is valid.
func (r *reading) fit(k task) *fit {
	f := &fit{task: k, misfit: math.NaN(), lineShare: analysis.Text("")}
	if in, ok := r.inlines[k]; ok {
		f.inline = &in
	}
	late := 0
	if f.trials, late = r.timed(k, f.inline); len(f.trials)+late == 0 {
		if f.inline == nil {
			return nil
		}
		f.note("only sizes that do not cross the link have valid trials")
		return f
	}
	unchecked := func(t *analysis.Trial) bool { _, ok := r.checks[t.ID]; return !ok }
	all := len(f.trials)
	// else the round trip is left out
	if slices.ContainsFunc(f.trials, func(t *analysis.Trial) bool { return !unchecked(t) }) {
		f.trials = slices.DeleteFunc(f.trials, unchecked)
	}
	cells := map[*analysis.Cell]int{}
	var points []stats.CostPoint
	for _, t := range f.trials {
		if _, ok := cells[t.Info]; !ok {
			cells[t.Info] = len(cells)
		}
		points = append(points, stats.CostPoint{RTT: r.checks[t.ID].RTT, Size: size(t.Info),
			Time: t.Metrics["duration_p50"], Cell: cells[t.Info], Block: t.Block})
	}
	var err error
	if f.model, err = stats.FitCost(points, analysis.Confidence); err != nil {
		f.note(strings.TrimPrefix(err.Error(), "cost: "))
		return f
	}
	f.judge(cells)
	if late > 0 {
		f.note(words.Plural(int64(late), "trial", "trials") + " took longer than the deadline and could not be fitted")
	}
	if n := all - len(f.trials); n > 0 {
		f.note(words.Plural(int64(n), "trial", "trials") + " without a measured round trip could not be fitted")
	}
	f.lineShare = r.lineShare(f)
	if f.lineShare.Lo > 1+analysis.EffectFloor {
		f.note("1/B is more than the link carries: these sizes cannot separate bytes from round trips")
	}
	return f
}

// judge says what the model of these cells leaves open, and by how much it is off.
func (f *fit) judge(cells map[*analysis.Cell]int) {
	m, parameters := f.model, 3
	f.note(m.Why)
	if math.IsNaN(m.R.Mid) {
		parameters--
		f.note("the round trip did not vary: A contains the round trips")
	}
	if math.IsNaN(m.B.Mid) {
		parameters--
		f.note("the size did not vary: A contains the bytes")
	}
	f.tested = len(f.trials) > len(cells) && len(cells) > parameters
	residuals := make([][]float64, len(cells))
	for i, t := range f.trials {
		residuals[cells[t.Info]] = append(residuals[cells[t.Info]], m.Residual[i])
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

func (f *fit) local() bool { return f.inline != nil && f.inline.whole }

// rate is 1/B; an end that B does not keep from 0 is unknown.
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

// lineShare is the rate of a file's bytes as a share of what the link, as measured, can
// carry of them: its rate, divided for a write by the expansion at the largest size.
func (r *reading) lineShare(f *fit) analysis.Value {
	largest := size(slices.MaxFunc(f.trials, func(a, b *analysis.Trial) int {
		return cmp.Compare(size(a.Info),
			size(b.Info))
	}).Info)
	var rates, expansions []float64
	for _, t := range f.trials {
		if l := r.checks[t.ID]; l.WantRate > 0 && l.Rate > 0 {
			rates = append(rates, l.Rate/8)
		}
		if x := t.Metrics["expansion"]; size(t.Info) == largest && x > 1 && experiment.Writes(f.operation) {
			expansions = append(expansions, x)
		}
	}
	v := f.rate()
	if len(rates) == 0 || f.local() {
		return analysis.Text("")
	}
	line := stats.Median(rates)
	if len(expansions) > 0 {
		line /= stats.Median(expansions)
	}
	scale := analysis.Num(1 / line)
	return analysis.Value{Number: v.Number * scale, Lo: v.Lo * scale, Hi: v.Hi * scale}
}

func (f *fit) rounds() bool { return !math.IsNaN(f.model.R.Mid) }

// base is the baseline's fit that an operation's is compared with; nil: there is none.
func (r *reading) base(f *fit, fits []*fit) *fit {
	if f.system == r.Baseline || f.model.Points == 0 || f.local() {
		return nil
	}
	equal := []string{f.operation}
	if f.operation != "put" && experiment.Writes(f.operation) {
		equal = append(equal, "put") // moves the same bytes
	}
	for _, op := range equal {
		if i := slices.IndexFunc(fits, func(b *fit) bool {
			return b.task == task{r.Baseline, op, f.connections} && b.model.Points > 0
		}); i >= 0 {
			if base := fits[i]; !base.local() && base.rounds() == f.rounds() { // else two models of one link
				return base
			}
			return nil
		}
	}
	return nil
}

// byBlock is by how much a block's trials took longer than their cells' medians, in the
// mean of logarithms, beside that of all blocks; NaN for a block without trials. What a
// cell as such is off the fit by is no effect of a block that lacks the cell.
func (f *fit) byBlock() func(block int) float64 {
	all := map[*analysis.Cell][]float64{}
	log := func(i int) (float64, bool) { // a fit may give less than nothing
		return math.Log1p(f.model.Residual[i]), f.model.Residual[i] > -1
	}
	for i, t := range f.trials {
		if x, ok := log(i); ok {
			all[t.Info] = append(all[t.Info], x)
		}
	}
	sums, counts := map[int]float64{}, map[int]float64{}
	for i, t := range f.trials {
		if x, ok := log(i); ok {
			sums[t.Block], counts[t.Block] = sums[t.Block]+x-stats.Median(all[t.Info]), counts[t.Block]+1
		}
	}
	mean := 0.0
	for b := range sums {
		mean += sums[b] / counts[b] / float64(len(sums))
	}
	return func(b int) float64 { return sums[b]/counts[b] - mean }
}

// against is an operation's time divided by what the baseline's fit gives for the same
// absolute bytes and round trip: the geometric mean over cells of each cell's median.
// Its interval is over blocks, in which the baseline may have been slow or fast, too.
func (r *reading) against(f *fit, fits []*fit) analysis.Value {
	base := r.base(f, fits)
	if base == nil {
		return analysis.Text("")
	}
	var cells []*analysis.Cell
	rows := map[*analysis.Cell][]float64{} // logarithms of ratios by block
	for _, t := range f.trials {
		rtt, expansion := 0.0, 1.0
		if f.rounds() {
			rtt = r.checks[t.ID].RTT
		}
		if x := t.Metrics["expansion"]; experiment.Writes(f.operation) && x > 0 {
			expansion = x
		}
		want := base.model.Predict(rtt, expansion*size(t.Info))
		if !(want > 0) {
			continue
		}
		c := t.Info
		if rows[c] == nil {
			cells = append(cells, c)
		}
		for len(rows[c]) <= t.Block {
			rows[c] = append(rows[c], math.NaN())
		}
		rows[c][t.Block] = math.Log(t.Metrics["duration_p50"] / want)
	}
	if len(cells) == 0 {
		return analysis.Text("")
	}
	var logs [][]float64
	var centres []float64
	for _, c := range cells {
		known := slices.DeleteFunc(slices.Clone(rows[c]), math.IsNaN)
		for i, x := range known {
			known[i] = math.Exp(x)
		}
		logs, centres = append(logs, rows[c]), append(centres, math.Log(stats.Median(known)))
	}
	off := base.byBlock()
	for _, row := range logs {
		for b := range row {
			row[b] -= off(b)
		}
	}
	v, _, _ := analysis.Pooled(logs, centres)
	return v
}

// unsettled is the misfit of a cell from which on a test that rejects nothing shows
// nothing either: the trials are too noisy.
const unsettled = 0.25

func (f *fit) holds(fits int) analysis.Value {
	switch {
	case f.model.Points == 0:
		return analysis.Text("no fit")
	case !f.model.Holds && !f.tested, f.model.Holds && f.misfit > unsettled:
		return analysis.Text("not known")
	case f.model.Holds:
		return analysis.Text("yes")
	}
	no := analysis.Text("no")
	if f.misfit >= misfit && f.model.P <= misfitAlpha/float64(fits) {
		no.Tone = analysis.Warn
	}
	return no
}

// costTable is what every operation costs.
func (r *reading) costTable() analysis.Table {
	t := analysis.Table{ID: "cost", Title: "What an operation costs",
		Caption: "Time = A + R·RTT + B·size, fitted to valid trials with one operation under way: A is explained by " +
			"neither distance nor size, R is the number of sequential round trips. At the size A/B, half of the " +
			"time without distance is A.",
		Head: []analysis.TableColumn{{Key: "system", Name: "system", Narrow: true},
			{Key: "operation", Name: "operation", Narrow: true},
			{Key: "connections", Name: "connections"}, {Key: "a", Name: "A", Unit: "s", Narrow: true},
			{Key: "rounds", Name: "R, round trips", Unit: "1", Narrow: true},
			{Key: "b", Name: "B", Unit: "s/B"}, {Key: "rate", Name: "1/B", Unit: "B/s", Narrow: true},
			{Key: "half", Name: "A/B", Unit: "B"},
			{Key: "line_share", Name: "1/B of the load line", Unit: "ratio"}}}
	if r.Baseline != "" {
		t.Head = append(t.Head, analysis.TableColumn{Key: "against", Name: "× " + r.Baseline + ", same bytes",
			Unit: "×", Narrow: true})
	}
	t.Head = append(t.Head, []analysis.TableColumn{{Key: "from", Name: "smallest size", Unit: "B"},
		{Key: "to", Name: "largest size", Unit: "B"},
		{Key: "stays", Name: "does not cross the link up to", Unit: "B"},
		{Key: "misfit", Name: "worst cell off by", Unit: "ratio"},
		{Key: "n", Name: "trials", Unit: "1"}, {Key: "holds", Name: "holds", Narrow: true},
		{Key: "note", Name: "note"}}...)
	fits := r.fits()
	for _, f := range fits {
		m, none := f.model, analysis.Text("")
		a, rounds, b, rate, half, stays := none, none, none, none, none, none
		if m.Points > 0 {
			a, rounds, b, rate = analysis.Estimate(m.A), analysis.Estimate(m.R), analysis.Estimate(m.B), f.rate()
			if a.Number > 0 && b.Lo > 0 {
				half = analysis.Number(m.A.Mid / m.B.Mid)
			}
		}
		if f.inline != nil {
			stays = analysis.Number(f.inline.stays)
		}
		row := []any{f.system, f.operation, f.connections, a, rounds, b, rate, half, f.lineShare}
		if r.Baseline != "" {
			row = append(row, r.against(f, fits))
		}
		sizes := []float64{}
		for _, x := range f.trials {
			sizes = append(sizes, size(x.Info))
		}
		from, to := none, none
		if len(sizes) > 0 {
			from, to = analysis.Number(slices.Min(sizes)), analysis.Number(slices.Max(sizes))
		}
		t.Add(append(row, from, to, stays, f.misfit, float64(len(sizes)), f.holds(len(fits)),
			strings.Join(f.notes, "; "))...)
	}
	return t
}

// phaseTable is what each phase of an operation takes by the system's own account, and
// its round trips by ours: the slope of its time over the measured round trip.
func (r *reading) phaseTable() analysis.Table {
	type key struct {
		task
		size  float64
		phase string
	}
	type point struct {
		rtt, took float64
		block     int
	}
	points := map[key][]point{}
	var order []key
	for _, t := range r.Trials {
		if !t.Valid() || !sequential(t.Info) {
			continue
		}
		for _, d := range t.Details {
			if d.Kind != record.DetailPhase {
				continue
			}
			k := key{taskOf(t.Info), size(t.Info), d.Name}
			if points[k] == nil {
				order = append(order, k)
			}
			p := point{math.NaN(), d.Value, t.Block}
			if l, ok := r.checks[t.ID]; ok {
				p.rtt = l.RTT
			}
			points[k] = append(points[k], p)
		}
	}
	tasks := r.tasks()
	slices.SortStableFunc(order, func(a, b key) int {
		return cmp.Or(slices.Index(tasks, a.task)-slices.Index(tasks, b.task), cmp.Compare(a.size, b.size))
	})
	t := analysis.Table{ID: "phases", Title: "Phases of an operation", Folded: true,
		Caption: "Time of each phase by the system's own account at the shortest round trip, and its round trips: " +
			"the slope over the measured round trip, the median of the blocks'. Phases may overlap.",
		Head: []analysis.TableColumn{{Key: "system", Name: "system"}, {Key: "operation", Name: "operation"},
			{Key: "connections", Name: "connections"},
			{Key: "size", Name: "size", Unit: "B"}, {Key: "phase", Name: "phase"}, {Key: "rtt", Name: "RTT", Unit: "s"},
			{Key: "took", Name: "time", Unit: "s"},
			{Key: "rounds", Name: "round trips", Unit: "1"}, {Key: "n", Name: "trials", Unit: "1"}}}
	for _, k := range order {
		var at, first, slopes []float64
		shortest, longest := math.Inf(1), 0.0
		rtts, took := map[int][]float64{}, map[int][]float64{} // by block
		for _, p := range points[k] {
			if !math.IsNaN(p.rtt) {
				rtts[p.block], took[p.block] = append(rtts[p.block], p.rtt), append(took[p.block], p.took)
				shortest, longest = min(shortest, p.rtt), max(longest, p.rtt)
			}
		}
		for _, p := range points[k] {
			if len(rtts) == 0 || p.rtt <= shortest+leastRTT/2 {
				at, first = append(at, p.rtt), append(first, p.took)
			}
		}
		for b := range rtts { // a disturbance of a block changes all of it
			if slices.Max(rtts[b])-slices.Min(rtts[b]) <= leastRTT { // its long delay is missing
				continue
			}
			if s := stats.Slope(rtts[b], took[b]); !math.IsNaN(s) {
				slopes = append(slopes, s)
			}
		}
		rounds := analysis.Text("")
		if longest > shortest+leastRTT && len(slopes) > 0 {
			rounds = analysis.Estimate(stats.MedianCI(slopes, analysis.Confidence))
		}
		t.Add(k.system, k.operation, k.connections, k.size, k.phase, stats.Median(at), stats.Median(first), rounds,
			float64(len(points[k])))
	}
	return t
}
