// Package collect polls systems: read-only requests at an absolute schedule,
// each with its start and end, its failures recorded as gaps. It keeps nothing:
// it can go on for months in constant memory.
package collect

import (
	"context"
	"errors"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// Collector polls one node.
type Collector struct {
	Node    system.Node
	Every   time.Duration           // the schedule: epoch, epoch + Every, …
	Timeout time.Duration           // of one call
	Now     func() time.Duration    // since the trial's epoch, monotonic
	First   int64                   // number of the first poll: where an earlier session ended
	Keep    func(record.Poll) error // takes each poll
	Seen    func(calls []Answer)    // optional: the same in the system's own words, for exit conditions
}

// Answer is what one call brought.
type Answer struct {
	Call     string
	Readings []system.Reading
	Err      error
}

// Run polls until ctx ends, then once more (bounded by Timeout), so that the last
// state is known; it returns the first error of Keep.
func (c *Collector) Run(ctx context.Context) error { return errors.New("collect: not there yet") }

// Once is a single poll, beyond the schedule.
func (c *Collector) Once(ctx context.Context) (record.Poll, error) {
	return record.Poll{}, errors.New("collect: not there yet")
}

// Calls are the requests of one poll of a node: its own, or those that its
// abilities allow.
func Calls(node system.Node) []system.Call { return nil }
