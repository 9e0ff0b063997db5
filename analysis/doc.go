// Package analysis judges a run: from the facts of a run directory to a frame of
// rows, and from the frame to summaries, comparisons, gates and findings.
//
//	run.db ─▶ rows (one number of one trial) ─▶ Frame ─▶ Result ─▶ package report
//
// It knows factors and metrics, but no scenario and no storage system: what is
// particular to a scenario is data in its [View]. It reads run directories only: no
// daemon, no network, no clock, so that the same directory gives the same result
// years later.
//
// The trial is the unit of replication. Operations and nodes of one trial are
// summarised first; medians, ratios and their intervals are over valid trials.
// Warm-up trials and invalid trials stay visible, and out of every statistic.
package analysis
