package report

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// RunsTrend is the headline metric of one experiment from run to run.
type RunsTrend struct {
	Title    string        `json:"title"`
	Scenario string        `json:"scenario"`
	Metric   record.Metric `json:"metric"`
	Runs     []TrendPoint  `json:"runs"` // earliest first
	Cells    []TrendCell   `json:"cells"`
	Changes  []TrendChange `json:"changes"`
	// Comparisons of neighbouring runs, all cells of a system together, and cell
	// by cell. Those of one step, from a run to the next, are a family of Holm's
	// correction: what is shown of a step does not change with later runs.
	Overall int `json:"comparisons"`
	Single  int `json:"cell_comparisons"`
	// Blind are the steps, by the place of their later run in Runs, whose trials are
	// too few to show a change of a single cell, however large.
	Blind []int `json:"blind"`
}

// TrendPoint is one of the runs.
type TrendPoint struct {
	ID       string    `json:"id"`
	Started  time.Time `json:"started"`
	Plimsoll string    `json:"plimsoll"`
	Differs  []string  `json:"differs"` // what is not as in the run before, beside plimsoll
}

// TrendCell is a cell, with the same settings in every run that has it.
type TrendCell struct {
	System string    `json:"system"`
	Where  string    `json:"where"`
	Points []Summary `json:"points"` // one for each run; N is 0 where it has no valid trial
	slot   int
}

// TrendChange is a change from a run to the next that is shown.
type TrendChange struct {
	To     int    `json:"to"` // place in Runs
	From   int    `json:"from"`
	System string `json:"system"`
	Where  string `json:"where"` // empty: over all cells
	Cells  int    `json:"cells"`
	Value  Num    `json:"value"` // ratio, later over earlier
	Lo     Num    `json:"lo"`
	Hi     Num    `json:"hi"`
	PHolm  Num    `json:"p_holm"`
	Better int    `json:"better"` // 1 better, -1 worse
	// Never says in which run, "later" or "earlier", half or more of the trials never
	// came to the number: there is no ratio then, and the rank test alone shows.
	Never string `json:"never,omitempty"`
}

// trendRun is what a trend needs of a run.
type trendRun struct {
	metric      record.Metric
	cells       []trendCell
	environment map[string]string
}

type trendCell struct {
	key           [sha256.Size]byte // of its system and settings
	system, where string
	slot          int
	summary       Summary
}

// trendEnvironment are the facts of a run whose change is told beside a trend.
var trendEnvironment = []string{"cpu.model", "cpu.count", "kernel", "memory.MemTotal"}

// readTrendRun reads the headline metric of a run's cells.
func readTrendRun(dir string) (*trendRun, error) {
	run, err := record.Open(dir)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	in, err := gather(run, false)
	if err != nil {
		return nil, err
	}
	r := summarised(in)
	if in.err != nil {
		return nil, in.err
	}
	t := &trendRun{environment: map[string]string{}}
	t.metric, _ = r.metric(r.headline)
	for _, p := range r.Environment {
		if slices.Contains(trendEnvironment, p.Key) || strings.HasPrefix(p.Key, "systems.") && strings.HasSuffix(p.Key, ".version") {
			t.environment[p.Key] = p.Value
		}
	}
	slots := map[string]int{}
	for _, s := range r.Systems {
		slots[s.Name] = s.Slot
	}
	for _, k := range r.keys() {
		if s, ok := k.cell.summary(t.metric); ok && s.N > 0 {
			t.cells = append(t.cells, trendCell{sha256.Sum256([]byte(k.same())), k.cell.System, r.shape.where(k.cell), slots[k.cell.System], s})
		}
	}
	return t, nil
}

// trends fills the trends: of runs that have ended, by scenario and title, or by
// plan where they have no title. all are in the order of the index.
func (x *indexer) trends(ctx context.Context, index *Index, all []*knownRun) {
	groups := map[string][]*knownRun{}
	var order []string
	for _, k := range slices.Backward(all) { // earliest first
		if k.row.Error != "" || k.row.Run.State == "running" {
			continue
		}
		key := k.row.Scenario + "\n" + k.row.Title
		if k.row.Title == "" {
			key = k.row.Scenario + "\nplan " + k.row.Run.PlanHash
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], k)
	}
	type place struct {
		group []*knownRun
		i     int
	}
	var wanted []place
	for _, key := range order {
		if g := groups[key]; len(g) > 1 {
			for i := range g {
				wanted = append(wanted, place{g, i})
			}
		}
	}
	inTurn(len(wanted), func(i int) {
		w := wanted[i]
		w.group[w.i] = x.withPoints(ctx, w.group[w.i])
	})
	for _, key := range order {
		t := trendOf(groups[key])
		index.Notes = append(index.Notes, leftOutOfTrend(groups[key], t)...)
		if t != nil {
			index.Trends = append(index.Trends, *t)
		}
	}
}

// withPoints is what is known of a run, with its points, or why there are none.
func (x *indexer) withPoints(ctx context.Context, k *knownRun) *knownRun {
	without := func(why string) *knownRun {
		return &knownRun{stamp: k.stamp, row: k.row, why: why}
	}
	switch {
	case k.points != nil:
		return k
	case k.row.Run.Valid == 0:
		return without("no trial is valid")
	}
	id := k.row.ID
	full, err := inTime(ctx, &x.reading, "points "+id, func() (*knownRun, error) {
		points, err := readTrendRun(x.dir(id))
		if err != nil {
			return nil, err
		}
		full := &knownRun{stamp: k.stamp, row: k.row, points: points}
		x.keep(id, full)
		return full, nil
	})
	switch {
	case ctx.Err() != nil && err != nil:
		return without("still being read")
	case err != nil:
		return without("cannot be read: " + x.failed(id, k.stamp, err).row.Error)
	}
	return full
}

// leftOutNamed is how many runs that a trend lacks are named.
const leftOutNamed = 5

// leftOutOfTrend says which runs of an experiment its trend lacks, and why: a run in
// which everything failed is no gap.
func leftOutOfTrend(runs []*knownRun, t *RunsTrend) []string {
	var named []string
	for _, k := range runs {
		why := k.why
		if why == "" && t != nil && !slices.ContainsFunc(t.Runs, func(p TrendPoint) bool { return p.ID == k.row.ID }) {
			why = "no cell has the settings of one of another run"
		}
		if why != "" {
			named = append(named, k.row.ID+" ("+why+")")
		}
	}
	if len(named) == 0 {
		return nil
	}
	if more := len(named) - leftOutNamed; more > 0 {
		named = append(named[:leftOutNamed], plural(int64(more), "more", "more"))
	}
	name := runs[0].row.Title
	if name == "" {
		name = runs[0].row.Scenario
	}
	return []string{fmt.Sprintf("The trend of %s lacks %s.", name, list(named))}
}

// trendOf is the trend of runs of one experiment, earliest first; nil: no two of
// them have a cell in common.
func trendOf(runs []*knownRun) *RunsTrend {
	var with []*knownRun
	last := map[[sha256.Size]byte]int{}
	for _, k := range runs {
		if k.points != nil && len(k.points.cells) > 0 {
			with = append(with, k)
			for _, c := range k.points.cells {
				last[c.key]++
			}
		}
	}
	// A run that has no cell in common with another is no part of it.
	with = slices.DeleteFunc(with, func(k *knownRun) bool {
		return !slices.ContainsFunc(k.points.cells, func(c trendCell) bool { return last[c.key] > 1 })
	})
	if len(with) < 2 {
		return nil
	}
	headline := with[len(with)-1].points.metric
	with = slices.DeleteFunc(with, func(k *knownRun) bool {
		return k.points.metric.Key != headline.Key || // an older version's
			!slices.ContainsFunc(k.points.cells, func(c trendCell) bool { return last[c.key] > 1 })
	})
	if len(with) < 2 {
		return nil
	}
	t := &RunsTrend{Title: with[0].row.Title, Scenario: with[0].row.Scenario, Metric: headline, Changes: []TrendChange{}}
	at := map[[sha256.Size]byte]int{}
	for i, k := range with {
		for _, c := range k.points.cells {
			if last[c.key] < 2 {
				continue
			}
			n, ok := at[c.key]
			if !ok {
				n = len(t.Cells)
				at[c.key] = n
				t.Cells = append(t.Cells, TrendCell{System: c.system, Where: c.where, Points: make([]Summary, len(with)), slot: c.slot})
			}
			t.Cells[n].Points[i] = c.summary
		}
	}
	if len(t.Cells) == 0 {
		return nil
	}
	for i, k := range with {
		p := TrendPoint{ID: k.row.ID, Started: k.row.Run.Started, Plimsoll: k.row.Plimsoll, Differs: []string{}}
		if i > 0 {
			p.Differs = differing(with[i-1].points.environment, k.points.environment)
		}
		t.Runs = append(t.Runs, p)
	}
	t.overall()
	t.single()
	slices.SortStableFunc(t.Changes, func(a, b TrendChange) int { return a.To - b.To })
	return t
}

// differing says what changed in a run's environment.
func differing(was, is map[string]string) []string {
	words := []string{}
	for key, v := range is {
		if w, ok := was[key]; ok && w != v {
			words = append(words, fmt.Sprintf("%s: %s, was %s", key, v, w))
		}
	}
	slices.Sort(words)
	return words
}

// before is the latest run before another with a point of a cell; -1: none.
func (c *TrendCell) before(i int) int {
	for i--; i >= 0; i-- {
		if c.Points[i].N > 0 {
			return i
		}
	}
	return -1
}

// overall compares neighbouring runs in all cells of a system together.
func (t *RunsTrend) overall() {
	var systems []string
	for _, c := range t.Cells {
		if !slices.Contains(systems, c.System) {
			systems = append(systems, c.System)
		}
	}
	for to := 1; to < len(t.Runs); to++ {
		var step []TrendChange
		var ps []float64
		for _, system := range systems {
			var xs, ys [][]float64
			for i := range t.Cells {
				c := &t.Cells[i]
				if c.System == system && c.Points[to].N > 0 && c.Points[to-1].N > 0 {
					xs, ys = append(xs, c.Points[to].logs()), append(ys, c.Points[to-1].logs())
				}
			}
			i, p := stats.RunsRatio(xs, ys, Confidence)
			if !i.Bounded() {
				continue
			}
			step = append(step, TrendChange{From: to - 1, To: to, System: system, Cells: i.N, Value: Num(i.Mid), Lo: Num(i.Lo), Hi: Num(i.Hi)})
			ps = append(ps, p)
		}
		t.Overall += len(ps)
		t.shown(step, stats.Holm(ps))
	}
}

// single compares each cell with itself in the run before that has it.
func (t *RunsTrend) single() {
	t.Blind = []int{}
	for to := 1; to < len(t.Runs); to++ {
		var cells []*TrendCell
		var ps []float64
		least := 1.0
		for i := range t.Cells {
			c := &t.Cells[i]
			if from := c.before(to); from >= 0 && c.Points[to].N > 0 {
				cells = append(cells, c)
				ps = append(ps, stats.MannWhitney(c.Points[to].all(t.Metric), c.Points[from].all(t.Metric)))
				least = min(least, stats.MinP(c.Points[to].N, c.Points[from].N))
			}
		}
		t.Single += len(ps)
		if len(ps) > 0 && least*float64(len(ps)) > alpha {
			t.Blind = append(t.Blind, to)
		}
		holm := stats.Holm(ps)
		var step []TrendChange
		var kept []float64
		for i, c := range cells {
			if !(holm[i] <= alpha) {
				continue // without its interval, which is what takes time
			}
			step, kept = append(step, c.change(to, t.Metric)), append(kept, holm[i])
		}
		t.shown(step, kept)
	}
}

// change is how a cell differs from itself in the run before that has it.
func (c *TrendCell) change(to int, m record.Metric) TrendChange {
	from := c.before(to)
	is, was := c.Points[to].all(m), c.Points[from].all(m)
	d := TrendChange{From: from, To: to, System: c.System, Where: c.Where, Cells: 1, Value: unknown, Lo: unknown, Hi: unknown}
	switch never(is, was, m) {
	case 1:
		d.Never = "later"
	case -1:
		d.Never = "earlier"
	default:
		q, _ := unpairedRatio(is, was)
		d.Value, d.Lo, d.Hi = Num(q.Mid), Num(q.Lo), Num(q.Hi)
	}
	return d
}

// shown keeps the changes whose corrected P and interval agree, and that are
// large enough to speak of.
func (t *RunsTrend) shown(step []TrendChange, holm []float64) {
	for i, c := range step {
		c.PHolm = Num(holm[i])
		apart := c.Never != "" || c.Lo > 1 && !math.IsInf(float64(c.Lo), 0) || c.Hi < 1 && !math.IsInf(float64(c.Hi), 0)
		if c.Better = direction(apart && holm[i] <= alpha, c.ratio(t.Metric), t.Metric.Better); c.Better != 0 {
			t.Changes = append(t.Changes, c)
		}
	}
}

// ratio is the ratio, or how far beyond all ratios it lies.
func (c TrendChange) ratio(m record.Metric) float64 {
	side := map[string]string{"later": "new", "earlier": "base"}[c.Never]
	return RunRatio{Value: c.Value, Never: side}.value(m)
}
