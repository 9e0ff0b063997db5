package report

// retrieveLens looks at throughput and times under concurrency.
func retrieveLens() lens {
	return lens{
		headline: func(p planView) string {
			if p.OpenLoop {
				// Offered load decides the throughput of an open loop; what the systems
				// decide is how long an operation takes.
				return "duration_p50"
			}
			return "throughput"
		},
		steady:    "throughput",
		relieve:   "Receive with drop, which costs a fifth, shape the link, or run on a machine with more CPUs.",
		operation: [2]string{"request", "requests"},
		axis:      []string{"retrieve.concurrency", "retrieve.arrivals.rate", "data.size", "retrieve.range", "link.delay", "link.rate"},
		compared:  []string{"throughput", "ttfb_p50", "ttfb_p99", "duration_p50", "duration_p99", "ops_rate", "system_cpu_per_gb", "system_rss_peak"},
		columns: []metricColumn{{"throughput", "throughput", ""}, {ratioColumn, "ratio", ""}, {"load_line_share", "of the load line", ""},
			{"ttfb_p50", "TTFB, median", ""}, {"ttfb_line_share", "its load line", ""}, {"duration_p50", "duration, median", ""}, {"duration_line_share", "its load line", ""}},
		resources: []metricColumn{{"system_cpu_per_gb", "server CPU", ""}, {"system_rss_peak", "server memory, peak", ""}, {"generator_cpu_per_gb", "generator CPU", ""},
			{"generator_rss_peak", "generator memory, peak", ""}, {"others_busy", "CPU of others", ""}},
		text:     retrieveText,
		work:     func(r *Report, in *input) { r.throughputFalls(); r.silences(in) },
		rules:    []rule{shortTrials, whatBounds, throughputFallsFound, retrieveStarts, silent},
		answers:  (*Report).comparisons,
		draw:     (*Report).drawRetrieve,
		loadLine: (*Report).retrieveLineWords,
	}
}

// retrieveText are the metrics of the terminal's table. In an open loop the
// offered load decides the throughput; how it was kept up with and how long it
// took are what matters.
func retrieveText(r *Report) []textMetric {
	if r.headline != "throughput" {
		return []textMetric{{"achieved_share", "kept up", 0}, {"duration_p50", "duration", 0}, {ratioColumn, "ratio", 0}, {"ttfb_p50", "TTFB", 2}, {"throughput", "throughput", 3}}
	}
	if r.Baseline == "" { // nothing is compared: latency is half of the answer
		return []textMetric{{"throughput", "throughput", 0}, {"duration_p50", "p50", 0}, {"duration_p99", "p99", 0}, {"ttfb_p50", "TTFB", 2}, {"load_line_share", "of the line", 3}}
	}
	return []textMetric{{"throughput", "throughput", 0}, {ratioColumn, "ratio", 0}, {"load_line_share", "of the line", 4}, {"ttfb_p50", "TTFB", 2}, {"duration_p50", "duration", 3}}
}

var retrieveDrawings = []drawing{
	{id: "throughput", metric: "throughput", title: "Throughput", zero: true, line: "load_line",
		reads: "File bytes delivered per second. The dashed line is the load line, the physical limit of the link: the closer a mark is to it, the less there is to win."},
	{id: "ttfb", metric: "ttfb_p50", title: "Time to first byte", zero: true, line: "ttfb_line",
		reads: "Median over a trial's requests, from the moment a request started to the first byte of its body. The dashed line is the load line: the round trips that have to be waited for."},
	{id: "ttfb-tail", metric: "ttfb_p99", title: "Time to first byte, slowest 1 %", zero: true, line: "ttfb_line",
		reads: "99th percentile over a trial's requests; shown only where a trial has enough requests to support it."},
	{id: "duration", metric: "duration_p50", title: "Duration", zero: true, line: "duration_line",
		reads: "Median over a trial's requests, from the moment a request started to its last byte. The dashed line is the load line of a request that has the link for itself; those that share it are above it by that alone."},
	{id: "duration-tail", metric: "duration_p99", title: "Duration, slowest 1 %", zero: true, line: "duration_line",
		reads: "99th percentile over a trial's requests; shown only where a trial has enough requests to support it."},
}

// drawRetrieve makes the figures in the order of the page.
func (r *Report) drawRetrieve(in *input) error {
	main := retrieveDrawings[0]
	if r.headline != main.metric {
		main = retrieveDrawings[3] // the duration of an open loop's operations
	}
	if f := r.metricFigure(main); len(f.Panels) > 0 {
		hero := r.hero(f)
		r.Hero = &hero
		if len(f.Panels) > 1 {
			r.add(f)
		}
	}
	for i, d := range retrieveDrawings {
		if d.id != main.id {
			r.add(r.metricFigure(d))
		}
		if i == 0 {
			r.add(r.ratioFigure(r.headline))
			r.add(r.successFigure())
			r.add(r.outcomeFigure())
		}
	}
	r.add(r.resourceFigure("server-cpu", "system_cpu_per_gb", "Server CPU", "CPU seconds that the server's processes spent per GB (10^9 bytes) of file bytes received, whatever became of the operation."))
	r.add(r.resourceFigure("server-memory", "system_rss_peak", "Server memory", "Peak resident memory, summed over the server's processes."))
	r.add(r.resourceFigure("generator-cpu", "generator_cpu_per_gb", "Load generator CPU", "CPU seconds of the load generator per GB received: what the measuring itself costs."))
	f, err := r.timeFigure(in)
	if err != nil {
		return err
	}
	r.add(f)
	return nil
}
