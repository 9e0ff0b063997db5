package analysis

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// View describes how to present the rows of a scenario: which metrics answer its question, in
// which figures and columns. It is data, except for functions that read further facts of one
// trial (Read) or compute tables from several (Tables).
type View struct {
	Scenario string
	Question string
	// Operation names what outcomes count, in singular and plural ("leecher", "leechers").
	Operation [2]string
	// Headline is the metric of the verdict, of ratios over all cells and of drift.
	Headline func(*experiment.Plan) string
	// Rate is the metric that more concurrency should increase; empty: none.
	Rate string
	// Axis lists the factors suitable for the axis of a figure, best first.
	Axis []string
	// Compared are the metrics whose ratios to the baseline are computed.
	Compared []string
	// Columns of the main table and of the table of resources (folded).
	Columns, Resources []Column
	// Numbers are the metrics of the three numbers on the first screen.
	Numbers []string
	Figures []Figure
	Heads   []Table // of Tables, without rows
	// LoadLine explains the physical limit of this scenario, in one or two sentences.
	LoadLine string
	// Rules are additional to CommonRules. SetConditions sets their conditions.
	Rules []Rule
	// Censored are metrics that are censored in a trial that lacks them and in which some
	// operations were not ok; none: the percentiles of times, and throughput, in trials
	// with operations that were cut off.
	Censored []string
	// Censors decides whether a metric that a trial lacks is censored; cut is the answer of Censored; nil: cut.
	Censors func(t *Trial, metric string, cut bool) bool
	// Arrange sets what cells are compared with (Baseline, Pair); nil: the baseline system's
	// cell of the same group.
	Arrange func(*Frame)
	// Read returns facts of a trial that are not in its results; nil: none.
	Read func(t *Trial, facts *record.Reader) (Facts, error)
	// Tables computes tables from several cells, such as a cost fit or effects of a factorial.
	// Those without rows are not shown.
	Tables func(*Frame) []Table
	// Verdict replaces the comparison with the baseline, unless it is or returns nil.
	Verdict func(*Result) *Verdict
	// Polled are the metrics that depend on polls.
	Polled map[string]Polled
	// Lasting are metrics of processes that live through all trials of a run: they are one
	// value per run, however many trials read it, so runs cannot be compared by them.
	Lasting []string
	// Accumulates reports whether each trial of a cell affects the next one, so that rising or
	// falling results are not drift; nil: none does.
	Accumulates func(*Cell) bool
	// InTime: an operation that reaches its deadline has failed, because time is the question
	// and the limit is the same for all systems. OneFate: operations of one trial are not
	// independent.
	InTime, OneFate bool
	// OneTrial: a run has one long trial of each cell by design.
	OneTrial bool
	// Alike reports whether a metric of two cells is comparable; nil: always.
	Alike func(f *Frame, metric string, a, b *Cell) bool
}

// ParseView parses the data of a view in YAML. Views are embedded and tests parse all of them, so
// an error is a bug.
func ParseView(text string) *View {
	v := &View{}
	if err := yaml.UnmarshalWithOptions([]byte(text), v, yaml.Strict()); err != nil {
		panic(err)
	}
	return v
}

// SetConditions sets the conditions of the view's rules by ID.
func (v *View) SetConditions(conditions map[string]func(*Result) []Case) {
	for i := range v.Rules {
		v.Rules[i].Holds = conditions[v.Rules[i].ID]
	}
}

// Head returns a table of the view without rows.
func (v *View) Head(id string) Table {
	return v.Heads[slices.IndexFunc(v.Heads, func(t Table) bool { return t.ID == id })]
}

// Facts are the result of View.Read for one trial.
type Facts struct {
	Metrics []record.Metric // definitions of the rows and series that the run does not define
	Rows    []Row
	Series  []Series
	Spans   []Span
}

// Column is a metric as a column of a table.
type Column struct {
	Metric string // its key; RatioColumn: ratio of the headline to the baseline
	Head   string
	Unit   string // unit to display, if it differs from the metric's
	Narrow bool   // part of the terminal's table of 80 columns
}

// RatioColumn is the pseudo-metric of the headline's ratio to the baseline.
const RatioColumn = "ratio"

// FigureKind is one of the five figures.
type FigureKind string

const (
	// a metric against the axis, with its load line, intervals, single trials and panels
	Against      FigureKind = "against"
	Bars         FigureKind = "bars"         // labelled bars with intervals, one for each cell or entity
	Distribution FigureKind = "distribution" // ECDF of entities' values, or quantiles of operations
	OverTime     FigureKind = "time"         // a series
	Timeline     FigureKind = "timeline"     // spans of nodes
)

// Figure is one figure of a view.
type Figure struct {
	ID      string
	Kind    FigureKind
	Metric  string // of its rows or series; RatioColumn: the headline's ratio
	More    []string
	X       string // metric of the horizontal axis with one mark per trial; empty: the layout's factor
	Line    string // metric of the load line; empty: none
	Along   string // quantity of the horizontal axis of a series if it is not time: "objects stored"
	Title   string
	Caption string // one or two sentences
	Log     bool
	Folded  bool
}

// Table is a table of a scenario besides that of its cells.
type Table struct {
	ID      string        `json:"id"`
	Title   string        `json:"title"`
	Caption string        `json:"caption,omitempty"`
	Head    []TableColumn `json:"head"`
	Rows    [][]Value     `json:"rows"`
	Folded  bool          `json:"folded,omitempty"`
}

// TableColumn describes a column. Unit is that of its numbers; empty for text.
type TableColumn struct {
	Key    string `json:"key"` // "a", "b", "rounds"
	Name   string `json:"name"`
	Unit   string `json:"unit,omitempty"`
	Narrow bool   `json:"-" yaml:"narrow"` // part of the terminal's table
	// Positive: its numbers are above 0, so intervals that reach 0 are uninformative.
	Positive bool `json:"-" yaml:"positive"`
}

// Value is one entry of a table: text, or a number with its interval.
type Value struct {
	Text   string `json:"text,omitempty"`
	Number Num    `json:"value"`
	Lo     Num    `json:"lo"`
	Hi     Num    `json:"hi"`
	Tone   Tone   `json:"tone,omitempty"`
}

// Add appends a row of texts (string), numbers without an interval (float64) and values.
func (t *Table) Add(entries ...any) {
	row := make([]Value, len(entries))
	for i, e := range entries {
		switch e := e.(type) {
		case string:
			row[i] = Text(e)
		case float64:
			row[i] = Number(e)
		case Value:
			row[i] = e
		default:
			panic(fmt.Sprintf("table %s: entry %d is a %T", t.ID, i, e))
		}
		if i < len(t.Head) && t.Head[i].Positive && Uninformative(row[i].Lo, row[i].Hi) {
			row[i].Text = NotResolved
		}
	}
	t.Rows = append(t.Rows, row)
}

// NotResolved is displayed instead of a number whose interval is uninformative.
const NotResolved = "not resolved"

// Uninformative reports whether the interval of a positive number is uninformative: it reaches 0, is open
// at one end, or its ends differ by two orders of magnitude.
func Uninformative(lo, hi Num) bool {
	return lo.Known() != hi.Known() || lo.Known() && (lo <= 0 || hi > 100*lo)
}

// Get returns an entry by its row and the key of its column; Unknown and empty if the table has
// no such column.
func (t Table) Get(row int, key string) Value {
	i := slices.IndexFunc(t.Head, func(c TableColumn) bool { return c.Key == key })
	if i < 0 {
		return Text("")
	}
	return t.Rows[row][i]
}

// Text returns a text entry.
func Text(s string) Value { return Value{Text: s, Number: Unknown, Lo: Unknown, Hi: Unknown} }

// Number returns an entry without an interval.
func Number(v float64) Value { return Value{Number: Num(v), Lo: Unknown, Hi: Unknown} }

// Estimate returns an entry with its interval; an end that the data do not bound is Unknown.
func Estimate(i stats.Interval) Value {
	r := rangeOf(i)
	return Value{Number: r.Value, Lo: r.Lo, Hi: r.Hi}
}

// Layout arranges cells in figures: one factor along the axis, one mark for each system, and a
// panel for each combination of the other factors.
type Layout struct {
	Axis   *Axis    // nil: no suitable factor varies
	Facets []string // paths of the factors of the panels
	Panels []string // their names, in plan order
}

// Axis is the factor drawn from left to right.
type Axis struct {
	Path, Label, Unit string
	Values            []float64 // ascending
	Labels            []string
	Log               bool
}

// layout chooses the axis: the first factor of the view's axes that varies and has only numbers as
// levels.
func (f *Frame) layout() Layout {
	var l Layout
	for _, path := range f.View.Axis {
		if l.Axis = axisOf(f.Cells, path); l.Axis != nil {
			break
		}
	}
	for _, p := range f.FactorPaths() {
		if l.Axis == nil || p != l.Axis.Path {
			l.Facets = append(l.Facets, p)
		}
	}
	for _, c := range f.Cells {
		if p := l.PanelOf(c); !slices.Contains(l.Panels, p) {
			l.Panels = append(l.Panels, p)
		}
	}
	return l
}

// axisOf returns nil if a factor does not vary or has a level that is not a number, like "whole".
func axisOf(cells []*Cell, path string) *Axis {
	a := &Axis{Path: path}
	var levels []Factor
	for _, c := range cells {
		x, ok := c.Factor(path)
		if ok && x.Unit == "" {
			return nil
		}
		if ok && !slices.ContainsFunc(levels, func(y Factor) bool { return y.Number == x.Number }) {
			levels = append(levels, x)
		}
	}
	if len(levels) < 2 {
		return nil
	}
	slices.SortFunc(levels, func(x, y Factor) int { return cmp.Compare(x.Number, y.Number) })
	for _, x := range levels {
		a.Label, a.Unit = x.Label, x.Unit
		a.Values, a.Labels = append(a.Values, x.Number), append(a.Labels, x.Text())
	}
	a.Log = a.Values[0] > 0
	return a
}

// PanelOf names the panel of a cell: "range 1 MiB · delay 20 ms"; empty if there is only one.
func (l Layout) PanelOf(c *Cell) string {
	return c.levels(" · ", func(x Factor) bool { return slices.Contains(l.Facets, x.Path) })
}

// levels lists some of a cell's factors with their levels.
func (c *Cell) levels(between string, which func(Factor) bool) string {
	var names []string
	for _, x := range c.Factors {
		if which(x) {
			names = append(names, x.Label+" "+x.Text())
		}
	}
	return strings.Join(names, between)
}

// At returns the cell's position on the axis; 0 without an axis.
func (l Layout) At(c *Cell) float64 {
	if l.Axis == nil {
		return 0
	}
	x, _ := c.Factor(l.Axis.Path)
	return x.Number
}

// Where names the group of a cell: "concurrency 64, range 1 MiB".
func (l Layout) Where(c *Cell) string {
	axis := c.levels("", func(x Factor) bool { return l.Axis != nil && x.Path == l.Axis.Path })
	return strings.Trim(axis+", "+l.PanelOf(c), ", ")
}

// Name names a cell by its system and group.
func (l Layout) Name(c *Cell) string { return strings.TrimSuffix(c.System+", "+l.Where(c), ", ") }

// valueUnit matches a canonical value: "10MiB", "40ms", "1%".
var valueUnit = regexp.MustCompile(`^([0-9.]+)([A-Za-zµ%].*)$`)

// Text formats the factor's value: "10 MiB", "100 Mbit/s".
func (x Factor) Text() string {
	m := valueUnit.FindStringSubmatch(x.Value)
	if m == nil {
		return x.Value
	}
	if x.Unit == "bit/s" && strings.HasSuffix(m[2], "bit") {
		m[2] += "/s"
	}
	return m[1] + " " + m[2]
}
