// Package retrieve contains the scenario retrieve, which measures how retrieval over HTTP holds up
// under concurrency.
package retrieve

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// Scenario measures how retrieval over HTTP holds up under concurrency. It follows "HTTP
// Retrieval Benchmarks with Boost": whole objects and ranges, at rising concurrency, over links
// of known rate and delay, compared with a raw baseline over the same link.
type Scenario struct{}

func (Scenario) Name() string { return "retrieve" }

//go:embed metrics.txt
var definitions string

// Metrics implements Scenario. Times of operations count from the intended start, which in a
// closed loop is the actual start.
func (Scenario) Metrics() []record.Metric {
	return append(scenario.Definitions(definitions, "retrieve"), scenario.Machine()...)
}

// Problems implements Scenario.
func (Scenario) Problems(use experiment.SystemUse, info system.Info, cells []experiment.Cell) []system.Problem {
	needs := []scenario.Need{{Ability: "http", By: "the scenario retrieve"}}
	const hint = "`plimsoll systems` lists what each system can do"
	for _, c := range cells {
		if m := c.Retrieve.Mix; m != nil {
			needs = append(needs, scenario.Need{Ability: "put", By: "retrieve.mix", Hint: hint})
			if m.Delete > 0 {
				needs = append(needs, scenario.Need{Ability: "delete", By: "retrieve.mix.delete", Hint: hint})
			}
		}
	}
	problems := scenario.Unmet(info.Can, needs)
	dropped := slices.ContainsFunc(cells, func(c experiment.Cell) bool { return c.Retrieve.Receive == "drop" })
	if dropped && scenario.OverTLS(use) {
		problems = append(problems, system.Problem{
			What: "receive: drop does not work over https, because the kernel cannot discard what has to be decrypted",
			Hint: "use receive: verify for it, for instance under systems with {use: " + use.Use +
				", override: {receive: verify}}, or plain http",
		})
	}
	http2 := slices.ContainsFunc(cells, func(c experiment.Cell) bool { return c.Retrieve.HTTP == "2" })
	if http2 && !scenario.OverTLS(use) {
		problems = append(problems, system.Problem{What: "HTTP/2 is offered over https only",
			Hint: "use http: auto or 1.1, or a system with TLS, for instance {use: nginx, with: {tls: true}}"})
	}
	return problems
}

// Prepares implements Scenario.
func (Scenario) Prepares(cells []experiment.Cell) (objects, bytes int64) {
	sets := map[string]bool{}
	for _, c := range cells {
		if a := c.Retrieve.Replays(); a != nil && a.Found != nil && c.Data.Objects > 0 {
			return int64(a.Found.Paths), a.Found.Stored
		}
		if data := c.Data; data.Size > 0 && !sets[data.Key()] { // else the system has its own objects
			sets[data.Key()] = true
			objects += int64(data.Objects)
			bytes += int64(data.Objects) * int64(data.Size)
		}
	}
	return objects, bytes
}

// Prepare stores the data sets of the cells, or finds the existing objects.
func (Scenario) Prepare(ctx context.Context, site scenario.Site, cells []experiment.Cell) (scenario.Runner, error) {
	first := site.Cluster.Nodes()[0]
	r := &runner{site: site, node: first, server: first.(system.HTTPServer), copyMost: copyMost,
		CreatedObjects: scenario.NewCreatedObjects(site.Use, first), brought: map[copyOf]string{},
		sets: map[string][]object{}}
	for _, c := range cells {
		set, done := r.sets[c.Data.Key()]
		if !done {
			begun := time.Now()
			var err error
			if set, err = r.dataSet(ctx, c.Data, cells); err != nil {
				return r, err
			}
			r.sets[c.Data.Key()] = set
			site.Event("phase", "data ready", fmt.Sprintf("%s: %d objects of %s", site.Use.Name, len(set), c.Data.Size),
				time.Since(begun))
		}
		for _, o := range set {
			if err := o.fits(c.Retrieve.Range); err != nil {
				return r, fmt.Errorf("%s: %w", site.Use.Name, err)
			}
		}
	}
	return r, nil
}

// Measure computes the metrics of a trial; Metrics defines them.
func (Scenario) Measure(in scenario.Measured) map[string]float64 {
	m := map[string]float64{}
	put := scenario.Numbers(m)
	s := in.Summary
	c := s.Counts()
	ofOperations(s, in.Load.Seconds, put)
	if in.Load.OfferedRate > 0 {
		put("offered_rate", in.Load.OfferedRate)
		// Nothing can end before the shortest answer has come.
		ends := in.Load.Seconds
		if least := s.Quantile(record.Duration, 0); least < ends { // false for NaN
			ends -= least
		}
		put("achieved_share", float64(c.Finished())/ends/in.Load.OfferedRate)
	}
	loadLines(in, m, put)
	// Bytes of failed operations cost as much as the others.
	if received := float64(c.Bytes); received > 0 {
		// The system's CPU time covers the whole trial, including the warm-up.
		put("system_cpu_per_gb", in.Usage.SystemCPU/((received+in.Load.Warmed)/1e9))
		put("generator_cpu_per_gb", in.Load.CPU/(received/1e9))
	}
	put("generator_rss_peak", in.Load.RSSPeak)
	put("system_rss_peak", in.Usage.SystemRSSPeak)
	scenario.PutMachine(&in, put)
	return m
}

// ofOperations puts the metrics of a trial's operations, of all or of one kind.
func ofOperations(s *record.Summary, seconds float64, put func(string, float64)) {
	c := s.Counts()
	put("success_rate", float64(c.Outcomes[record.OK])/float64(c.Finished())) // NaN, and so omitted, if none finished
	for key, q := range map[string]float64{"p50": 0.50, "p90": 0.90, "p99": 0.99} {
		for name, of := range map[string]record.Measure{"ttfb_": record.TTFB, "duration_": record.Duration} {
			if enough(s.Count(of), q) {
				put(name+key, s.KaplanMeier(of, q))
			}
		}
	}
	put("throughput", float64(c.OKBytes+c.InFlightBytes)/seconds)
	put("ops_rate", float64(c.Outcomes[record.OK])/seconds)
}

// enough reports whether n operations support quantile q. The median needs only one, because
// intervals are computed over trials, not operations.
func enough(n int64, q float64) bool {
	return n >= stats.PercentileN(q) || q <= 0.5 && n > 0
}

// loadLines puts the load lines of the trial, and their ratios to the measured values.
func loadLines(in scenario.Measured, m map[string]float64, put func(string, float64)) {
	p, ok := scenario.PathOf(in.Link)
	if !ok {
		return
	}
	spec := in.Cell.Retrieve
	q := scenario.Request{Size: float64(spec.Range), Fresh: spec.Connections == "fresh", TLS: in.TLS}
	if q.Size == 0 {
		q.Size = float64(in.Cell.Data.Size)
	}
	scenario.PutLine(m, "ttfb_line", p.Wait(q), "ttfb_p50")
	if spec.Replays() != nil || spec.Mix != nil { // many sizes, or both directions
		return
	}
	scenario.PutLine(m, "duration_line", p.Time(q), "duration_p50")
	// In an open loop, the offered load limits the throughput.
	if line := p.LoadLine(spec.Concurrency, q); spec.Arrivals == nil && !math.IsNaN(line) {
		put("load_line", line)
		put("load_line_share", m["throughput"]/line)
	}
}

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
	v.Censors = func(t *analysis.Trial, metric string, cut bool) bool { // a mix may have too few reads for a percentile
		return cut && (t.Info.Plan.Retrieve.Mix == nil || !strings.HasPrefix(metric, "ttfb_p9"))
	}
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
	for op := range scenario.UntilError(facts.Ops(t.ID), &err) {
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
	for w := range scenario.UntilError(facts.Windows(t.ID), &err) {
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
