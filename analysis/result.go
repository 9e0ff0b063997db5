package analysis

import (
	"cmp"
	"slices"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// Format is the version of summary.json's schema (docs/results.md).
const Format = 2

// Result is the complete evaluation of a run. Its JSON is the run's summary.json.
type Result struct {
	Format      int     `json:"format"`
	Scenario    string  `json:"scenario"`
	Title       string  `json:"title"`
	Question    string  `json:"question"`
	Description string  `json:"description,omitempty"`
	Verdict     Verdict `json:"verdict"`
	Headline    string  `json:"headline"` // key of the metric that is compared first
	*Frame
	Findings    []Finding            `json:"findings"`
	Gates       []Ruling             `json:"gates,omitempty"`
	Overall     []Overall            `json:"overall"`
	Tables      []Table              `json:"tables,omitempty"`
	Environment []Pair               `json:"environment"`
	Imported    *experiment.Imported `json:"imported,omitempty"`
}

// Analyse evaluates a frame.
func Analyse(f *Frame) (*Result, error) {
	e := f.Plan.Experiment
	r := &Result{Format: Format, Scenario: e.Scenario, Title: e.Title, Question: cmp.Or(e.Question, f.View.Question),
		Description: e.Description, Headline: f.View.Headline(f.Plan), Imported: f.Plan.Imported, Frame: f,
		Environment: f.environment()}
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
