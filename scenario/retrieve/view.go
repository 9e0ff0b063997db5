// Package retrieve contains the scenario retrieve, which measures how retrieval over HTTP holds up
// under concurrency.
package retrieve

import (
	_ "embed"
	"math"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

//go:embed view.yaml
var viewText string

// View returns the view of the results of retrieve.
func (Scenario) View() *analysis.View {
	v := analysis.ParseView(viewText)
	v.Headline = func(p *experiment.Plan) string {
		for _, c := range p.Cells {
			// the offered load determines an open loop's throughput
			if c.Retrieve != nil && c.Retrieve.Arrivals != nil {
				return "duration_p50"
			}
		}
		return "throughput"
	}
	v.Read, v.Tables = read, kindTable
	return v
}

// mostPoints limits the points of a trial's throughput: longer trials have wider steps.
const mostPoints = 120

// read returns the metrics of a mix by kind of operation, and the bytes received in each second
// of a trial. Seconds without bytes are points, too; the partial first and last seconds of the
// load are not.
func read(t *analysis.Trial, facts *record.Reader) (out analysis.Facts, err error) {
	if t.Info.Plan.Retrieve.Mix != nil {
		out.Rows = readKinds(t, facts, &err)
	}
	begin := 0.0 // start of the load after the warm-up, in seconds since the epoch
	for op := range scenario.Sound(facts.Ops(t.ID), &err) {
		if op.Kind != record.OpWarmup {
			begin = float64(op.Start) / 1e9
			break
		}
	}
	first, end := int64(math.Ceil(begin)), int64(begin+t.Seconds)
	if err != nil || end <= first {
		return out, err
	}
	step := max((end-first+mostPoints-1)/mostPoints, 1)
	bytes := make([]int64, (end-first+step-1)/step)
	for w := range scenario.Sound(facts.Windows(t.ID), &err) {
		if w.Second >= first && w.Second < end {
			bytes[(w.Second-first)/step] += w.Bytes
		}
	}
	s := analysis.Series{Trial: t, Metric: "throughput"}
	for i, n := range bytes {
		from := first + int64(i)*step
		to := min(from+step, end)
		rate := float64(n) / float64(to-from)
		s.Points = append(s.Points, analysis.Point{At: float64(from+to)/2 - begin, Value: rate, Lo: rate, Hi: rate})
	}
	out.Series = []analysis.Series{s}
	return out, err
}
