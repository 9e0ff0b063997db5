package report

import "github.com/plimsoll-project/plimsoll/record"

// lastingWords say why nothing is claimed of such a metric.
const lastingWords = "one process lived through all trials of a run: they are one value, and one against one shows nothing; more runs would"

// lasting reports whether a metric is of a process that lives through all trials of
// a run. Its peak of memory is then that of the run, however many trials looked at
// it: two runs of one program differ in it by some per cent, and taken for
// repetitions its trials, which hardly differ, would show that with any certainty.
func (r *Report) lasting(m record.Metric) bool {
	return m.Key == "system_rss_peak" && (r.Scenario == "retrieve" || r.Scenario == "overhead")
}

// single takes back what trials that are one value seem to show.
func (v *ComparedValue) single() {
	q := &v.Ratio
	q.Lo, q.Hi, q.P, q.PHolm = unknown, unknown, unknown, unknown
	q.Shown, q.Worth, q.Warn = false, 0, lastingWords
	v.Spread.P, v.Spread.PHolm, v.Spread.Shown = unknown, unknown, false
}
