// Package retrieve is the question how retrieval over HTTP holds up under concurrency.
package retrieve

import (
	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
)

// View is how the numbers of retrieve are read.
func View() *analysis.View {
	return &analysis.View{
		Scenario:  "retrieve",
		Question:  "How does retrieval over HTTP hold up under concurrency?",
		Operation: [2]string{"request", "requests"},
		Headline: func(p *experiment.Plan) string {
			for _, c := range p.Cells {
				// the offered load decides an open loop's throughput
				if c.Retrieve != nil && c.Retrieve.Arrivals != nil {
					return "duration_p50"
				}
			}
			return "throughput"
		},
		Axis: []string{"retrieve.concurrency", "retrieve.arrivals.rate", "retrieve.arrivals.speed", "data.size",
			"retrieve.range", "retrieve.zipf", "link.delay", "link.rate"},
		Read: read, Tables: kindTable,
		Compared: []string{"throughput", "ttfb_p50", "ttfb_p99", "duration_p50", "duration_p99", "ops_rate",
			"system_cpu_per_gb",
			"system_rss_peak"},
		Rate:    "throughput",
		Lasting: []string{"system_rss_peak"},
		Numbers: []string{"throughput", "ttfb_p50", "success_rate"},
		Columns: []analysis.Column{
			{Metric: "throughput", Head: "throughput", Narrow: true},
			{Metric: analysis.RatioColumn, Head: "ratio", Narrow: true},
			{Metric: "load_line_share", Head: "of the load line"}, {Metric: "ttfb_p50", Head: "TTFB p50", Narrow: true},
			{Metric: "duration_p50", Head: "p50"}, {Metric: "duration_p99", Head: "p99"}},
		Resources: []analysis.Column{
			{Metric: "system_cpu_per_gb", Head: "server CPU"}, {Metric: "system_rss_peak", Head: "server memory, peak"},
			{Metric: "generator_cpu_per_gb", Head: "generator CPU"},
			{Metric: "generator_rss_peak", Head: "generator memory, peak"},
			{Metric: "others_busy", Head: "CPU of others"}},
		LoadLine: "The load line is what the link, as measured before each trial, can carry with the round trips " +
			"that the requests need.",
		Figures: []analysis.Figure{
			{ID: "throughput", Kind: analysis.Against, Metric: "throughput", Line: "load_line", Title: "Throughput",
				Caption: "File bytes delivered per second, median over trials with its 95 % interval."},
			{ID: "latency", Kind: analysis.Distribution, Metric: "duration_p50",
				More: []string{"duration_p90", "duration_p99"}, Title: "Latency",
				Caption: "Time from the start of a request to its last byte: p50, p90 and p99 within a trial, " +
					"medians over trials."},
			{ID: "ttfb", Kind: analysis.Against, Metric: "ttfb_p50", Line: "ttfb_line", Title: "Time to first byte",
				Caption: "Median over the requests of a trial."},
			{ID: "success", Kind: analysis.Against, Metric: "success_rate", Title: "Success",
				Caption: "Requests that ended ok, of those that the server ended."},
			{ID: "ratio", Kind: analysis.Bars, Metric: analysis.RatioColumn, Title: "Ratio to the baseline",
				Caption: "Headline metric relative to the baseline in the same block. Intervals that cross 1 are " +
					"not significant."},
			{ID: "time", Kind: analysis.OverTime, Metric: "throughput", Line: "load_line",
				Title:   "Throughput over time",
				Caption: "File bytes received per second, in the trial of each cell that is nearest to its median."},
			{ID: "resources", Kind: analysis.Against, Metric: "system_cpu_per_gb", More: []string{"system_rss_peak"},
				Title:   "Server resources",
				Caption: "CPU seconds per GB received, and peak memory of the server's processes.", Folded: true},
		},
	}
}
