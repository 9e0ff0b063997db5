// Package record keeps what a run measured: operations, samples of processes,
// link checks and events, in one crash-safe directory that explains itself
// years later.
//
// A [Run] writes; a [Reader] reads, also while the run is still writing, on
// another machine, or from read-only media. Between them lies run.db, whose
// schema is documented in docs/run-db.md.
//
// What is durable when: [Create], [Run.Begin], [TrialWriter.End], [Run.Event] and [Run.Meta]
// return once their data is on the disk; [TrialWriter.Jobs] once it is the kernel's, so that killing the
// process does not lose it, and a power cut the last ten seconds. Operations, polls, samples,
// link checks and a trial's events are written about once a second; killing the
// process at any moment loses at most the last of them, and only of trials that
// had not ended.
//
// A trial that was running is executed again when its run is resumed, unless it
// lasts so long that it should go on: [Resume], [Run.Continue].
package record
