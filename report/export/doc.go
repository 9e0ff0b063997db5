// Package export writes the rows of a run for other programs: trials as CSV,
// Parquet and the Go benchmark format; operations, jobs, polls and marks, which
// may be many, streamed as CSV or Parquet.
package export
