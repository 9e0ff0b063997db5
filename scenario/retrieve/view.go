// Package retrieve is the question how retrieval over HTTP holds up under concurrency.
package retrieve

import (
	_ "embed"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

//go:embed view.yaml
var viewText string

// View is how the numbers of retrieve are read.
func (Scenario) View() *analysis.View {
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

// mostPoints is how many points a trial's throughput has: longer ones have wider steps.
const mostPoints = 120

// read reads the operations of a mix by kind, and the bytes that came in each second of a
// trial. Seconds in which nothing came are points, too; the last, which is cut off, is none.
func read(t *analysis.Trial, facts *record.Reader) (out analysis.Facts, err error) {
	if t.Info.Plan.Retrieve.Mix != nil {
		out.Rows = readKinds(t, facts, &err)
	}
	whole := int64(t.Seconds) / record.WindowSeconds
	step := max((whole+mostPoints-1)/mostPoints, 1)
	bytes := make([]int64, (whole+step-1)/step)
	for w := range scenario.Sound(facts.Windows(t.ID), &err) {
		if w.Second >= 0 && w.Second < whole {
			bytes[w.Second/step] += w.Bytes
		}
	}
	if len(bytes) == 0 {
		return out, err
	}
	s := analysis.Series{Trial: t, Metric: "throughput"}
	for i, n := range bytes {
		from := int64(i) * step
		to := min(from+step, whole)
		seconds := float64(to-from) * record.WindowSeconds
		rate := float64(n) / seconds
		s.Points = append(s.Points, analysis.Point{At: float64(from+to) / 2 * record.WindowSeconds, Value: rate,
			Lo: rate, Hi: rate})
	}
	out.Series = []analysis.Series{s}
	return out, err
}
