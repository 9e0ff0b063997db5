package report

import (
	"crypto/sha256"
	"fmt"
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
	// by cell: the families of Holm's correction.
	Overall int `json:"comparisons"`
	Single  int `json:"cell_comparisons"`
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
	in, err := gather(run)
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
		if s, ok := k.cell.Metrics[r.headline]; ok && s.N > 0 {
			t.cells = append(t.cells, trendCell{sha256.Sum256([]byte(k.same())), k.cell.System, r.shape.where(k.cell), slots[k.cell.System], s})
		}
	}
	return t, nil
}

// trends fills the trends: of runs that have ended, by scenario and title, or by
// plan where they have no title. all are in the order of the index.
func (x *indexer) trends(index *Index, all []*knownRun) {
	groups := map[string][]*knownRun{}
	var order []string
	for _, k := range slices.Backward(all) { // earliest first
		if k.row.Error != "" || k.row.Run.State == "running" || k.row.Run.Valid == 0 {
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
	var wanted []*knownRun
	for _, key := range order {
		if len(groups[key]) > 1 {
			wanted = append(wanted, groups[key]...)
		}
	}
	inTurn(len(wanted), func(i int) {
		k := wanted[i]
		if k.points != nil {
			return
		}
		points, err := readTrendRun(x.dir(k.row.ID))
		if err != nil {
			points = &trendRun{}
		}
		k.points = points
	})
	for _, key := range order {
		if t := trendOf(groups[key]); t != nil {
			index.Trends = append(index.Trends, *t)
		}
	}
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
	t := &RunsTrend{Title: with[0].row.Title, Scenario: with[0].row.Scenario, Metric: with[len(with)-1].points.metric, Changes: []TrendChange{}}
	at := map[[sha256.Size]byte]int{}
	for i, k := range with {
		if k.points.metric.Key != t.Metric.Key {
			continue // an older version's headline
		}
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
	var all []TrendChange
	var ps []float64
	for to := 1; to < len(t.Runs); to++ {
		for _, system := range systems {
			var groups [][2][]float64
			for i := range t.Cells {
				c := &t.Cells[i]
				if c.System == system && c.Points[to].N > 0 && c.Points[to-1].N > 0 {
					groups = append(groups, [2][]float64{c.Points[to].all(t.Metric), c.Points[to-1].all(t.Metric)})
				}
			}
			i, p := stats.MeanLogRatio(groups, Confidence)
			if i.N == 0 {
				continue
			}
			all = append(all, TrendChange{From: to - 1, To: to, System: system, Cells: i.N, Value: Num(i.Mid), Lo: Num(i.Lo), Hi: Num(i.Hi)})
			ps = append(ps, p)
		}
	}
	t.Overall = len(ps)
	t.keep(all, ps)
}

// single compares each cell with itself in the run before that has it.
func (t *RunsTrend) single() {
	type pair struct {
		cell     *TrendCell
		from, to int
	}
	var pairs []pair
	var ps []float64
	for i := range t.Cells {
		c := &t.Cells[i]
		for to := range c.Points {
			if from := c.before(to); from >= 0 && c.Points[to].N > 0 {
				pairs = append(pairs, pair{c, from, to})
				ps = append(ps, stats.MannWhitney(c.Points[to].all(t.Metric), c.Points[from].all(t.Metric)))
			}
		}
	}
	t.Single = len(ps)
	holm := stats.Holm(ps)
	var all []TrendChange
	var kept []float64
	for i, p := range pairs {
		if !(holm[i] <= alpha) {
			continue // without its interval, which is what takes time
		}
		q := stats.Ratio(p.cell.Points[p.to].all(t.Metric), p.cell.Points[p.from].all(t.Metric), Confidence)
		all = append(all, TrendChange{From: p.from, To: p.to, System: p.cell.System, Where: p.cell.Where, Cells: 1, Value: Num(q.Mid), Lo: Num(q.Lo), Hi: Num(q.Hi)})
		kept = append(kept, holm[i])
	}
	t.shown(all, kept)
}

// keep corrects a family for its size and keeps what is shown.
func (t *RunsTrend) keep(all []TrendChange, ps []float64) { t.shown(all, stats.Holm(ps)) }

// shown keeps the changes whose corrected P and interval agree, and that are
// large enough to speak of.
func (t *RunsTrend) shown(all []TrendChange, holm []float64) {
	for i, c := range all {
		c.PHolm = Num(holm[i])
		apart := holm[i] <= alpha && c.Lo.Known() && c.Hi.Known() && (c.Lo > 1 || c.Hi < 1)
		if c.Better = direction(apart, float64(c.Value), t.Metric.Better); c.Better != 0 {
			t.Changes = append(t.Changes, c)
		}
	}
}
