// Package analysis evaluates a run: it turns the facts of a run directory into a frame of rows,
// and the frame into summaries, comparisons, gates and findings.
//
//	run.db ─▶ rows (one number of one trial) ─▶ Frame ─▶ Result ─▶ package report
//
// It knows factors and metrics, but no scenario and no storage system: what is specific to a
// scenario is data in its [View]. It uses only run directories (no daemon, network or clock), so
// that the same directory gives the same result years later.
//
// The trial is the unit of replication. Operations and nodes of one trial are summarised first;
// medians, ratios and their intervals are over valid trials. Warm-up trials and invalid trials
// stay visible, but are in no statistic.
package analysis
