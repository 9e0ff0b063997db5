// Package record stores what a run measured (operations, samples of processes, link checks
// and events) in one crash-safe directory that can still be understood years later.
//
// A [Run] writes; a [Reader] reads, also while the run is still writing, on
// another machine, or from read-only media. Between them lies run.db, whose
// schema is documented in docs/run-db.md.
//
// Durability: [Create], [Run.Begin], [TrialWriter.End], [Run.Event] and [Run.Meta] return once
// their data is on the disk. [TrialWriter.Jobs] returns once the kernel has the data: killing the
// process loses nothing, and a power cut at most the last ten seconds. Operations, polls,
// samples, link checks and the events of trials are written about once a second; killing the
// process loses at most the last of them, and only of trials that had not ended.
//
// A trial that was running is executed again when its run is resumed, unless it is a long one
// that should continue: [Resume], [Run.Continue].
package record
