package analysis

import (
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// Format is the version of summary.json's schema (docs/results.md).
const Format = 2

// Result is the complete evaluation of a run. Its JSON is the run's summary.json.
type Result struct {
	Format      int                  `json:"format"`
	Scenario    string               `json:"scenario"`
	Title       string               `json:"title"`
	Question    string               `json:"question"`
	Description string               `json:"description,omitempty"`
	Verdict     Verdict              `json:"verdict"`
	Run         Run                  `json:"run"`
	Headline    string               `json:"headline"` // key of the metric that is compared first
	Baseline    string               `json:"baseline,omitempty"`
	Systems     []System             `json:"systems"`
	Metrics     []record.Metric      `json:"metrics"`
	Findings    []Finding            `json:"findings"`
	Gates       []Ruling             `json:"gates,omitempty"`
	Overall     []Overall            `json:"overall"`
	Cells       []*Cell              `json:"cells"`
	Tables      []Table              `json:"tables,omitempty"`
	Invalid     []InvalidTrial       `json:"invalid"`
	Skipped     []SkippedCell        `json:"skipped"`
	Links       []Link               `json:"links"`
	Notes       []string             `json:"notes"`
	Environment []Pair               `json:"environment"`
	Imported    *experiment.Imported `json:"imported,omitempty"`

	Frame *Frame `json:"-"`
	View  *View  `json:"-"`
}

// Analyse evaluates a frame.
func Analyse(f *Frame) (*Result, error) {
	e := f.Plan.Experiment
	r := &Result{Format: Format, Scenario: e.Scenario, Title: e.Title, Question: e.Question, Description: e.Description,
		Headline: f.View.Headline(f.Plan),
		Baseline: f.Baseline, Systems: f.Systems, Metrics: f.Metrics, Cells: f.Cells, Imported: f.Plan.Imported,
		Frame: f, View: f.View,
		Invalid: append([]InvalidTrial{}, f.Invalid...), Skipped: append([]SkippedCell{}, f.Skipped...),
		Links: append([]Link{}, f.Links...),
		Notes: append([]string{}, f.Notes...), Environment: f.environment(), Run: f.Run}
	if r.Question == "" {
		r.Question = f.View.Question
	}
	f.summarise()
	r.Overall = f.compare()
	if f.View.Tables != nil {
		r.Tables = slices.DeleteFunc(f.View.Tables(f), func(t Table) bool { return len(t.Rows) == 0 })
	}
	r.Gates = r.planGates()
	r.Findings = r.find(append(CommonRules(), f.View.Rules...))
	r.Verdict = r.verdict()
	return r, nil
}

// Found reports whether a rule fired.
func (r *Result) Found(rule string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Rule == rule })
}

// Table returns the table with an id; empty if there is none.
func (r *Result) Table(id string) Table {
	t, _ := find(r.Tables, func(t Table) bool { return t.ID == id })
	return t
}

// OverallOf returns a system's ratio to the baseline over all its cells.
func (r *Result) OverallOf(system, metric string) (Overall, bool) {
	return find(r.Overall, func(o Overall) bool { return o.System == system && o.Metric == metric })
}
