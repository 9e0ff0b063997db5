package analysis

import (
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// View is how the rows of one scenario are read: which metrics answer its question,
// in which figures and columns. It is data; its functions compute what follows from
// the facts of one trial (Read) or from the rows of several (Tables).
type View struct {
	Scenario string
	Question string
	// Operation names what is counted by outcomes: one, and several ("leecher", "leechers").
	Operation [2]string
	// Headline is the metric that verdict, ratios over all cells and drift are about.
	Headline func(*experiment.Plan) string
	// Rate is the metric that more concurrency should raise; empty: there is none.
	Rate string
	// Axis lists the factors that suit the axis of a figure, best first.
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
	// Rules of its own, beside those of every scenario. What they hold of is set by Hold.
	Rules []Rule
	// Censored are metrics whose value lies beyond what was watched in a trial that lacks
	// them and in which not every operation was ok; none: the percentiles of times in trials
	// with operations that were cut off.
	Censored []string
	// Prepare corrects what a recorded trial counts as operations (Outcomes, Classes)
	// before anything is counted; nil: it is right as it was recorded.
	Prepare func(t *record.Trial, facts *record.Reader) error
	// Arrange sets what cells are compared with (Baseline, Pair) where that is not the
	// baseline system's cell of the same group; nil: it is.
	Arrange func(*Frame)
	// Read adds what a trial's table of results does not hold; nil: nothing.
	Read func(t *Trial, facts *record.Reader) (Facts, error)
	// Tables are computed from several cells: a cost fit, effects of a factorial. Those without
	// rows are left out.
	Tables func(*Frame) []Table
	// Verdict replaces the comparison with the baseline; nil, or none: that.
	Verdict func(*Result) *Verdict
	// Polled are the metrics that follow from polls.
	Polled map[string]Polled
	// Lasting are the metrics of processes that live through all trials of a run: one
	// value per run, however many trials read it, so that runs cannot be compared by them.
	Lasting []string
	// Accumulates reports whether each trial of a cell changes what the next one finds, so
	// that results which rise or fall over the run are no drift; nil: none does.
	Accumulates func(*Cell) bool
	// InTime says that an operation which comes to its deadline has failed: the time is the
	// question, and its limit the same for all systems. OneFate: operations of one trial share
	// its fate.
	InTime, OneFate bool
	// OneTrial says that a run is one long trial of each cell by design.
	OneTrial bool
	// Goals are gates of the scenario's own, which decide no exit status; nil: none.
	Goals func(*Frame) []gate.Rule
	// Alike reports whether a metric of two cells compares like with like; nil: always.
	Alike func(f *Frame, metric string, a, b *Cell) bool
}

// ParseView reads what of a view is data, in YAML. It is ours, and tests read all of it: what is
// no view is a bug.
func ParseView(text string) *View {
	v := &View{}
	if err := yaml.UnmarshalWithOptions([]byte(text), v, yaml.Strict()); err != nil {
		panic(err)
	}
	return v
}

// Hold gives the rules of the view their conditions, by their IDs.
func (v *View) Hold(conditions map[string]func(*Result) []Case) {
	for i := range v.Rules {
		v.Rules[i].Holds = conditions[v.Rules[i].ID]
	}
}

// Head is a table of the view, without rows.
func (v *View) Head(id string) Table {
	return v.Heads[slices.IndexFunc(v.Heads, func(t Table) bool { return t.ID == id })]
}

// Facts are what Read found in one trial.
type Facts struct {
	Metrics []record.Metric // definitions of the rows and series that no definition of the run has
	Rows    []Row
	Series  []Series
	Spans   []Span
}

// Column is a metric as a column of a table.
type Column struct {
	Metric string // its key; RatioColumn: ratio of the headline to the baseline
	Head   string
	Unit   string // to show it in, where that is not the metric's own
	Narrow bool   // part of the terminal's table of 80 columns
}

// RatioColumn is the pseudo-metric of the headline's ratio to the baseline.
const RatioColumn = "ratio"

// FigureKind is one of the five figures.
type FigureKind string

const (
	// a metric against the axis, with its load line, intervals, single trials and panels
	Against      FigureKind = "against"
	Bars         FigureKind = "bars"         // labelled bars with intervals: one for each cell, or entity
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
	X       string // metric of the horizontal axis, one mark for each trial; empty: the layout's factor
	Line    string // metric of the load line; empty: none
	Along   string // what the points of a series lie along, if not time: "objects stored"
	Title   string
	Caption string // one or two sentences
	Log     bool
	Folded  bool
}

// Table is numbers in rows and columns. It is what a scenario shows beyond its cells.
type Table struct {
	ID      string        `json:"id"`
	Title   string        `json:"title"`
	Caption string        `json:"caption,omitempty"`
	Head    []TableColumn `json:"head"`
	Rows    [][]Value     `json:"rows"`
	Folded  bool          `json:"folded,omitempty"`
}

// TableColumn heads a column. Unit is that of its numbers; empty: text.
type TableColumn struct {
	Key    string `json:"key"` // "a", "b", "rounds"
	Name   string `json:"name"`
	Unit   string `json:"unit,omitempty"`
	Narrow bool   `json:"-" yaml:"narrow"` // part of the terminal's table
	// Positive says that its numbers are above 0: intervals that reach 0 say nothing.
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

// Add appends a row of words (string), numbers without an interval (float64) and values.
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
		if i < len(t.Head) && t.Head[i].Positive && Vague(row[i].Lo, row[i].Hi) {
			row[i].Text = TooSmall
		}
	}
	t.Rows = append(t.Rows, row)
}

// TooSmall replaces a number whose interval says nothing.
const TooSmall = "n too small"

// vague is the ratio of the ends of an interval from which on it says nothing.
const vague = 100

// Vague is whether the interval of a number that is above 0 says nothing: it reaches 0, is
// open at one end, or its ends differ by two orders of magnitude.
func Vague(lo, hi Num) bool {
	return lo.Known() != hi.Known() || lo.Known() && (lo <= 0 || hi > vague*lo)
}

// Get is an entry by its row and the key of its column; Unknown and empty where the
// table has no such column.
func (t Table) Get(row int, key string) Value {
	i := slices.IndexFunc(t.Head, func(c TableColumn) bool { return c.Key == key })
	if i < 0 {
		return Text("")
	}
	return t.Rows[row][i]
}

// Text is an entry of words.
func Text(s string) Value { return Value{Text: s, Number: Unknown, Lo: Unknown, Hi: Unknown} }

// Number is an entry without an interval.
func Number(v float64) Value { return Value{Number: Num(v), Lo: Unknown, Hi: Unknown} }

// Estimate is an entry with its interval; an end that the data do not bound is unknown.
func Estimate(i stats.Interval) Value {
	r := rangeOf(i)
	return Value{Number: r.Value, Lo: r.Lo, Hi: r.Hi}
}
