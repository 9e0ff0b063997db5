package report

// uploadLens looks at load tests: what stores a data set, what that costs, and
// when it slows down.
func uploadLens() lens {
	l := watchedLens()
	l.columns = []metricColumn{{"file_bandwidth", "file bandwidth", ""}, {ratioColumn, "ratio", ""}, {"accept_p50", "time to store, median", ""}, {"durable_p50", "to full redundancy", ""},
		{"storage_efficiency", "efficiency", ""}, {"absolute_per_file", "absolute bytes per file", ""}, {"attempts_per_object", "attempts per object", ""}}
	l.rules = append([]rule{unfinished, beyondLoadLine, wealthBreaks, sumBreaks, counterFalls, objectsLost, redundancyFell, nothingStored, storageFull, objectsNotDurable, objectsNotStored, objectsUnreadable}, append(l.rules, moreThanAsked, retriedObjects, adoptedObjects, endedBy)...)
	return l
}

// collectLens looks at polls alone.
func collectLens() lens {
	l := watchedLens()
	l.rules = append([]rule{unfinished, wealthBreaks, sumBreaks, counterFalls, redundancyFell}, append(l.rules, moreThanAsked, endedBy)...)
	l.loadLine = (*Report).watchedLineWords
	return l
}

// watchedLens is what both have in common.
func watchedLens() lens {
	return lens{
		headline:  func(planView) string { return "file_bandwidth" },
		steady:    "file_bandwidth",
		relieve:   "Shape the link, or run on a machine with more CPUs.",
		operation: [2]string{"attempt", "attempts"},
		axis:      []string{"upload.concurrency", "data.size", "link.delay", "link.rate"},
		compared:  []string{"file_bandwidth", "accept_p50", "durable_p50", "storage_efficiency"},
		resources: []metricColumn{{"system_cpu", "system CPU", ""}, {"system_rss_peak", "system memory, peak", ""}, {"generator_cpu_per_op", "generator CPU per attempt", ""},
			{"generator_rss_peak", "generator memory, peak", ""}, {"others_busy", "CPU of others", ""}},
		text:       func(*Report) []textMetric { return []textMetric{{"file_bandwidth", "file bandwidth", 0}} },
		work:       (*Report).load,
		rules:      []rule{whatBounds, slowing, contractsLeft, moneyUnspent, moneyUnnamed, moneyUnderWay, moneyCameIn, pollGaps, absurdReadings},
		judge:      (*Report).judgeLoads,
		answers:    (*Report).loadAnswers,
		draw:       (*Report).drawLoads,
		loadLine:   (*Report).loadLineWords,
		sections:   (*Report).loadSections,
		textTables: (*Report).loadTexts,
	}
}
