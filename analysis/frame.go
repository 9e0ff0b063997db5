// Package analysis evaluates a run: it turns the facts of a run directory into a frame of rows,
// and the frame into summaries, comparisons, gates and findings.
//
//	run.db ─▶ rows (one number of one trial) ─▶ Frame ─▶ Result ─▶ package report
//
// It knows factors and metrics, but no scenario and no storage system: what is specific to a
// scenario is data in its [View]. It uses only run directories (no daemon, network or clock), so
// that the same directory gives the same result years later.
//
// The trial is the unit of replication. Operations and nodes of one trial are summarised first;
// medians, ratios and their intervals are over valid trials. Warm-up trials and invalid trials
// stay visible, but are in no statistic.
package analysis

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Row is one number of one trial.
type Row struct {
	Trial  *Trial
	Entity string // node, operation kind or phase; empty: the whole trial
	Metric string
	Value  float64
	// Censored means that the true value is beyond what was observed: Value is +Inf, or −Inf
	// for rates.
	Censored bool
	Exact    string // unrounded Value of an amount of money; otherwise empty
}

// Series is a number that changes within a trial.
type Series struct {
	Trial  *Trial
	Metric string
	Over   string // quantity of the horizontal axis if it is not time: "objects stored"
	Points []Point
}

// Point is a value at a time with bounds Lo and Hi, which may be NaN. A point without a value
// (NaN) is a gap in the line.
type Point struct {
	At            float64 // seconds since the trial's epoch, or the value of Series.Over
	Value, Lo, Hi float64
}

// Thin drops points until at most about most are left, including the last.
func Thin(points []Point, most int) []Point {
	var kept []Point
	every := len(points)/most + 1
	for i, p := range points {
		if i%every == 0 || i == len(points)-1 {
			kept = append(kept, p)
		}
	}
	return kept
}

// Span is a period or, with From = To, a moment in the life of an entity of a trial.
type Span struct {
	Trial    *Trial
	Entity   string
	Kind     string // "download", "fault", "complete", …
	From, To float64
	Note     string
	Failed   bool // it ended without success
}

// Frame is the rows of a run, with its trials, cells and systems.
type Frame struct {
	Plan     *experiment.Plan   `json:"-"`
	View     *View              `json:"-"`
	Run      Run                `json:"run"`
	Systems  []System           `json:"systems"`
	Baseline string             `json:"baseline,omitempty"` // name of a system; empty: none
	Metrics  []record.Metric    `json:"metrics"`
	Cells    []*Cell            `json:"cells"`
	Trials   []*Trial           `json:"-"` // the latest of each cell and block, including warm-up
	Rows     []Row              `json:"-"`
	Series   []Series           `json:"-"`
	Spans    []Span             `json:"-"`
	Links    []Link             `json:"links"`
	Checks   []record.LinkCheck `json:"-"`
	Events   []record.Event     `json:"-"`
	Meta     map[string]string  `json:"-"`
	Invalid  []InvalidTrial     `json:"invalid"`
	Skipped  []SkippedCell      `json:"skipped"`
	Notes    []string           `json:"notes"`
	Layout   Layout             `json:"-"`

	byCell   map[rowKey][]Row // whole-trial rows of valid trials
	checksOf map[int64][]record.LinkCheck
}

// rowKey is a metric of a cell.
type rowKey struct {
	cell   *Cell
	metric string
}

// Run says what was executed.
type Run struct {
	Dir      string    `json:"-"` // its base name
	PlanHash string    `json:"plan_hash"`
	Seed     uint64    `json:"seed"`
	State    string    `json:"state"`             // "complete", "partial" or "running"
	Stopped  string    `json:"stopped,omitempty"` // the exit condition that ended it early
	Started  time.Time `json:"started,omitzero"`
	Seconds  float64   `json:"seconds"` // of valid trials, like operations
	Planned  int       `json:"planned"` // trials of the plan, without warm-up
	Done     int       `json:"done"`
	Valid    int       `json:"valid"`
	Invalid  int       `json:"invalid"`
	Failed   int       `json:"failed"`
	Skipped  int       `json:"skipped"` // left out on purpose; not in Done
	Warmup   int       `json:"warmup"`
	// Operations of valid trials.
	Operations int64 `json:"operations"`
}

// System is one system under test. Slot selects its colour and mark; the baseline has slot 0.
type System struct {
	Name     string            `json:"name"`
	Use      string            `json:"use"`
	Baseline bool              `json:"baseline,omitempty"`
	Slot     int               `json:"slot"`
	With     map[string]string `json:"-"` // its options in the plan
	Mode     string            `json:"-"` // "start" or "attach"
}

// Factor is one level of a factor.
type Factor struct {
	Path   string  `json:"path"`
	Label  string  `json:"label"`
	Value  string  `json:"value"`
	Number float64 `json:"number"`
	Unit   string  `json:"unit,omitempty"`
}

// Cell is one combination of factors, with its statistics over valid trials.
type Cell struct {
	ID       string             `json:"id"`
	System   string             `json:"system"`
	Baseline bool               `json:"baseline,omitempty"`
	Group    string             `json:"group"` // equal for cells that differ only in their system
	Factors  []Factor           `json:"factors"`
	Planned  int                `json:"planned"`
	Valid    int                `json:"valid"`
	Invalid  int                `json:"invalid"`
	Failed   int                `json:"failed"`
	Skipped  int                `json:"skipped"`
	Outcomes map[string]int64   `json:"outcomes"` // of the operations of valid trials
	Classes  map[string]int64   `json:"classes,omitempty"`
	Success  Proportion         `json:"success"`
	Metrics  map[string]Summary `json:"metrics"`
	Ratios   map[string]Ratio   `json:"ratios,omitempty"`  // to the baseline's cell of the same group
	Reasons  map[string]int     `json:"reasons,omitempty"` // against its invalid trials

	Plan experiment.Cell `json:"-"`
	Pair string          `json:"-"` // equal for cells that are compared: the group, unless the view sets it
}

// Trial is one execution of a cell.
type Trial struct {
	record.Trial
	Info *Cell
}

// InvalidTrial is a trial that is in no statistic.
type InvalidTrial struct {
	Trial   int64    `json:"trial"`
	Cell    string   `json:"cell"`
	System  string   `json:"system"`
	Where   string   `json:"where"`
	Block   int      `json:"block"`
	State   string   `json:"state"`
	Reasons []string `json:"reasons"`
	Error   string   `json:"error,omitempty"`
}

// SkippedCell has trials that were left out because what they need is not possible on this machine.
type SkippedCell struct {
	Cell   string `json:"cell"`
	System string `json:"system"`
	Where  string `json:"where"`
	Trials int    `json:"trials"`
	Why    string `json:"why"`
}

// Metric finds the definition of a metric.
func (f *Frame) Metric(key string) (record.Metric, bool) {
	if m, ok := find(f.Metrics, func(m record.Metric) bool { return m.Key == key }); ok {
		return m, true
	}
	return record.Metric{Key: key, Name: key, Unit: "1", Better: record.Neither}, false
}

// find returns the first element for which is returns true.
func find[T any](all []T, is func(T) bool) (v T, found bool) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return v, false
}

// Of returns the whole-trial rows of a metric in the valid trials of a cell, by block.
func (f *Frame) Of(c *Cell, metric string) []Row { return f.byCell[rowKey{c, metric}] }

// ValidTrials returns the valid trials of a cell.
func (f *Frame) ValidTrials(c *Cell) []*Trial {
	var all []*Trial
	for _, t := range f.Trials {
		if t.Info == c && t.Valid() {
			all = append(all, t)
		}
	}
	return all
}

// Entities returns the rows of a metric in a trial that belong to an entity.
func (f *Frame) Entities(t *Trial, metric string) []Row {
	var all []Row
	for _, r := range f.Rows {
		if r.Trial == t && r.Metric == metric && r.Entity != "" {
			all = append(all, r)
		}
	}
	return all
}

// Censored counts the censored rows.
func Censored(rows []Row) (n int) {
	for _, r := range rows {
		if r.Censored {
			n++
		}
	}
	return n
}

// index assigns the rows of valid trials to their cells.
func (f *Frame) index() {
	f.byCell, f.checksOf = map[rowKey][]Row{}, map[int64][]record.LinkCheck{}
	for _, l := range f.Checks {
		f.checksOf[l.Trial] = append(f.checksOf[l.Trial], l)
	}
	for _, r := range f.Rows {
		if r.Entity == "" && r.Trial.Valid() {
			k := rowKey{r.Trial.Info, r.Metric}
			f.byCell[k] = append(f.byCell[k], r)
		}
	}
}

// Factor returns the cell's level of a factor; false if it does not have that factor.
func (c *Cell) Factor(path string) (Factor, bool) {
	return find(c.Factors, func(f Factor) bool { return f.Path == path })
}

// Num is a number that may be unknown: NaN and infinities, which JSON does not support, become
// null.
type Num float64

// Unknown is an unknown number.
var Unknown = Num(math.NaN())

// Known reports whether n is a finite number.
func (n Num) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON writes the shortest decimal that reads back as n, or null.
func (n Num) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

// Range is a number with its interval. Parts may be Unknown.
type Range struct {
	Value Num `json:"value"`
	Lo    Num `json:"lo"`
	Hi    Num `json:"hi"`
}

// NoRange is an unknown number without an interval.
var NoRange = Range{Unknown, Unknown, Unknown}

// rangeOf returns an estimate; an end that the data do not bound is Unknown.
func rangeOf(i stats.Interval) Range {
	if !i.Bounded() {
		return Range{Num(i.Mid), Unknown, Unknown}
	}
	return Range{Num(i.Mid), Num(i.Lo), Num(i.Hi)}
}

// Value returns the cell's level of a factor in machine-readable form: the number in its base
// unit, or the word; empty if it has none.
func (c *Cell) Value(path string) string {
	x, ok := c.Factor(path)
	if ok && x.Unit != "" {
		return strconv.FormatFloat(x.Number, 'g', -1, 64)
	}
	return x.Value
}

// FactorPaths returns the paths of the factors that vary, without the system, in plan order.
func (f *Frame) FactorPaths() []string {
	var all []string
	for _, c := range f.Cells {
		for _, x := range c.Factors {
			if x.Path != "system" && !slices.Contains(all, x.Path) {
				all = append(all, x.Path)
			}
		}
	}
	return all
}
