// Package retrieve is the question how retrieval over HTTP holds up under concurrency.
package retrieve

import (
	_ "embed"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
)

//go:embed view.yaml
var viewText string

// View is how the numbers of retrieve are read.
func View() *analysis.View {
	v := analysis.ParseView(viewText)
	v.Headline = func(p *experiment.Plan) string {
		for _, c := range p.Cells {
			// the offered load decides an open loop's throughput
			if c.Retrieve != nil && c.Retrieve.Arrivals != nil {
				return "duration_p50"
			}
		}
		return "throughput"
	}
	v.Read, v.Tables = read, kindTable
	return v
}
