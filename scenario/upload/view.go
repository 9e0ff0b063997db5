// Package upload is the question what it takes to store a data set, and when it slows
// down; and that of collect, which only watches a system.
package upload

import (
	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
)

// View is how the numbers of upload are read.
func View() *analysis.View {
	return &analysis.View{
		Scenario:  "upload",
		Question:  "What does it take to store a whole data set, and when does it slow down?",
		Operation: [2]string{"attempt", "attempts"},
		OneTrial:  true,
		Headline:  func(*experiment.Plan) string { return "file_bandwidth" },
		Axis:      []string{"upload.concurrency", "data.size", "link.delay", "link.rate"},
		Compared:  []string{"file_bandwidth", "accept_p50", "durable_p50", "storage_efficiency", "money_per_tb_month"},
		Numbers:   []string{"files", "file_bandwidth", "money_per_tb_month"},
		Columns: []analysis.Column{
			{Metric: "files", Head: "objects", Narrow: true}, {Metric: "file_bandwidth", Head: "file bandwidth",
				Narrow: true},
			{Metric: analysis.RatioColumn, Head: "ratio"}, {Metric: "absolute_bandwidth", Head: "absolute"},
			{Metric: "storage_efficiency", Head: "efficiency", Narrow: true},
			{Metric: "accept_p50", Head: "store p50", Narrow: true},
			{Metric: "accept_p95", Head: "p95"}, {Metric: "durable_p50", Head: "full redundancy p50"},
			{Metric: "durable_p95", Head: "p95"},
			{Metric: "attempts_per_object", Head: "attempts"}, {Metric: "money_used", Head: "used", Narrow: true},
			{Metric: "money_per_tb_month", Head: "per TB·month"}},
		Resources: append([]analysis.Column{
			{Metric: "system_cpu", Head: "system CPU"}, {Metric: "system_rss_peak", Head: "system memory, peak"},
			{Metric: "generator_cpu_per_op", Head: "generator CPU per attempt"},
			{Metric: "generator_rss_peak", Head: "generator memory, peak"},
			{Metric: "others_busy", Head: "CPU of others"}}, watched...),
		LoadLine: "The load line of the file bandwidth is what the link carried before the test, divided by the " +
			"redundancy that the client makes. That of the efficiency is what whole sectors and the wanted " +
			"redundancy allow.",
		Figures: append(figures(), analysis.Figure{ID: "store-time", Kind: analysis.OverTime, Metric: "accept_time",
			More:  []string{"durable_time"},
			Title: "Time to store", Along: "objects stored",
			Caption: "Median time from a put to its acceptance, and to full redundancy, of neighbouring objects."}),
		Rules: rules(), Read: read, Tables: tables, Verdict: verdict,
	}
}

// CollectView is how the numbers of collect are read.
func CollectView() *analysis.View {
	v := View()
	v.Scenario, v.Question, v.OneTrial = "collect", "How is the system, and how does that change?", false
	v.LoadLine = "Nothing is moved here, so no time and no rate has a load line."
	v.Compared, v.Resources, v.Figures = []string{"file_bandwidth", "storage_efficiency"}, v.Resources[:2:2], figures()
	v.Resources = append(v.Resources, watched...)
	v.Columns = []analysis.Column{
		{Metric: "files", Head: "objects", Narrow: true}, {Metric: "stored_bytes", Head: "file bytes", Narrow: true},
		{Metric: "absolute", Head: "absolute bytes", Narrow: true},
		{Metric: "storage_efficiency", Head: "efficiency", Narrow: true},
		{Metric: "poll_p50", Head: "API latency"}, {Metric: "money_used", Head: "used", Narrow: true},
		{Metric: "money_per_tb_month", Head: "per TB·month"}}
	return v
}

// watched are the columns of the polls and of the system's own state.
var watched = []analysis.Column{{Metric: "poll_first_quarter", Head: "API latency, first quarter"},
	{Metric: "poll_last_quarter", Head: "last quarter"},
	{Metric: "polls_missed", Head: "polls missed"}, {Metric: "poll_gaps", Head: "calls failed"}, {Metric: "contracts",
		Head: "contracts"},
	{Metric: "copies", Head: "redundancy"}, {Metric: "absolute_per_file", Head: "absolute bytes per object"},
	{Metric: "crashes", Head: "crashes"}}

func figures() []analysis.Figure {
	return []analysis.Figure{
		{ID: "files", Kind: analysis.OverTime, Metric: "files", Title: "Objects stored",
			Caption: "Objects that the system has accepted."},
		{ID: "bytes", Kind: analysis.OverTime, Metric: "stored_bytes", More: []string{"absolute"}, Log: true,
			Title: "Bytes stored",
			Caption: "File bytes, and absolute bytes on the storage servers. " +
				"Their distance is padding and redundancy."},
		{ID: "bandwidth", Kind: analysis.OverTime, Metric: "file_bandwidth", More: []string{"absolute_bandwidth"},
			Log:     true,
			Title:   "Bandwidth",
			Caption: "File bytes and absolute bytes per second. The band is what the moments of the polls leave open."},
		{ID: "latency", Kind: analysis.OverTime, Metric: "api_latency", Title: "API latency",
			Caption: "Time that all calls of a poll took together: median of neighbouring polls, and their range."},
		{ID: "money", Kind: analysis.OverTime, Metric: "money_used", Title: "Money used",
			Caption: "What contracts cost less what lies unspent in them, by the system's own account."},
	}
}
