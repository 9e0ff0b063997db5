package report

// overheadLens looks at what one object costs before its bytes count: the fit of
// each operation, the memory of the processes, and what many objects do.
func overheadLens() lens {
	return lens{
		headline:  func(planView) string { return "duration_p50" },
		steady:    "duration_p50",
		relieve:   "Shape the link, or run on a machine with more CPUs.",
		operation: [2]string{"operation", "operations"},
		axis:      []string{"data.size", "overhead.concurrency", "link.delay", "link.rate"},
		compared:  []string{"duration_p50", "first_byte_p50", "ops_rate", "system_rss_peak"},
		columns: []metricColumn{{"duration_p50", "duration, median", ""}, {ratioColumn, "ratio", ""}, {"line_share", "its load line", ""}, {"first_byte_p50", "first byte, median", ""}, {"first_byte_line_share", "its load line", ""},
			{"wire_bytes", "on the link", ""}, {"expansion", "expansion", "×"}, {"put_p50", "put", ""}, {"get_p50", "get", ""}, {"stat_p50", "stat", ""}},
		resources: []metricColumn{{"system_cpu_per_op", "system CPU, with what surrounds it", ""}, {"system_rss_peak", "system memory, peak", ""}, {"generator_cpu_per_op", "generator CPU", ""},
			{"disk_per_byte", "disk per file byte", "×"}, {"entries_per_object", "entries per object", ""}, {"inodes_per_object", "inodes per object", ""}, {"others_busy", "CPU of others", ""}},
		text: func(*Report) []textMetric {
			return []textMetric{{"duration_p50", "duration", 0}, {ratioColumn, "ratio", 0}, {"line_share", "its line", 3}, {"first_byte_p50", "first byte", 2}, {"put_p50", "put", 1}, {"get_p50", "get", 1}, {"stat_p50", "stat", 1}}
		},
		before: func(r *Report, _ *input) {
			r.locate()
		},
		alike: (*Report).alike,
		work: func(r *Report, _ *input) {
			r.fit()
			r.throughputFalls()
			r.account()
			r.footprint()
			r.trends()
		},
		rules:      []rule{modelFails, whatBounds, throughputFallsFound, inlined, unequal, costStarts, costTraffic, memoryGrows, slowsDown},
		verdict:    (*Report).costClause,
		answers:    (*Report).costs,
		draw:       (*Report).drawOverhead,
		loadLine:   (*Report).overheadLineWords,
		sections:   (*Report).overheadSections,
		textTables: (*Report).overheadTables,
	}
}
