// Package upload contains the scenario upload, which measures what it takes to store a data set
// and when that slows down, and the scenario collect, which only watches a system.
package upload

import (
	_ "embed"
	"slices"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
)

//go:embed view.yaml
var viewText string

//go:embed collect.yaml
var collectText string

// View returns the view of the results of upload.
func (Scenario) View() *analysis.View { return viewOf(viewText, storedWords) }

// View returns the view of the results of collect, with the tables, rules and figures of
// upload, except for the figure of object times.
func (Collect) View() *analysis.View {
	v, of := viewOf(collectText, watchedWords), Scenario{}.View()
	v.Heads, v.Rules = of.Heads, of.Rules
	v.Figures = slices.DeleteFunc(of.Figures, func(f analysis.Figure) bool { return f.ID == "store-time" })
	return v
}

func viewOf(text, verdictWords string) *analysis.View {
	v := analysis.ParseView(text)
	v.Headline = func(*experiment.Plan) string { return "file_bandwidth" }
	v.Read, v.Tables = read, tables
	v.Verdict = func(r *analysis.Result) *analysis.Verdict { return verdict(r, verdictWords) }
	v.Hold(conditions)
	return v
}
