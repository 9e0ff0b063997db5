package record

import (
	"fmt"
	"slices"
)

// Outcome is how an operation ended. The set is closed: every operation of every scenario
// ends in exactly one of these. Only the server's failures count against the server (see
// [Outcome.ServerFailure]). Deadlines, operations in flight and those starved by a full link
// are reported separately, because a healthy server that shares its link fairly during a
// burst looks half broken to a client with a short deadline.
type Outcome uint8

const (
	OK Outcome = iota // all bytes came and, except in drop mode, were compared
	// the connection or the request was refused before any work was done (ECONNREFUSED, 429, 503)
	Refused
	Error      // an error of the server or of the protocol: status, malformed head, reset; see Op.Class
	Truncated  // the body was shorter than requested or announced
	WrongBytes // all bytes came, but they differ from the object's
	Stalled    // no byte came for the stall limit
	Deadline   // the operation's deadline passed before its last byte came
	InFlight   // not finished at the end of the window
	Cancelled  // stopped by the user or an exit condition
	Starved    // no byte came for the stall limit while other operations filled the link
	numOutcomes
)

var outcomeNames = [...]string{"ok", "refused", "error", "truncated", "wrong-bytes", "stalled", "deadline", "in-flight",
	"cancelled", "starved"}

// Classes of operations that were cut off or stalled: how far they had come.
const (
	PhaseConnect    = "connecting"
	PhaseBeforeHead = "before the head"
	PhaseHead       = "in the head"
	PhaseBody       = "in the body"
	PhaseNotStarted = "not started"
)

// Phases lists these classes.
var Phases = []string{PhaseConnect, PhaseBeforeHead, PhaseHead, PhaseBody, PhaseNotStarted}

// String is the outcome's name in files, figures and on the command line.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome(%d)", uint8(o))
}

// Outcomes lists all outcomes in the order of display.
func Outcomes() []Outcome {
	return []Outcome{OK, Refused, Error, Truncated, WrongBytes, Stalled, Starved, Deadline, InFlight, Cancelled}
}

// ParseOutcome is the inverse of String.
func ParseOutcome(s string) (Outcome, error) {
	if i := slices.Index(outcomeNames[:], s); i >= 0 {
		return Outcome(i), nil
	}
	return 0, fmt.Errorf("unknown outcome %q", s)
}

// ServerFailure reports whether the outcome counts against the server.
func (o Outcome) ServerFailure() bool {
	switch o {
	case Refused, Error, Truncated, WrongBytes, Stalled:
		return true
	}
	return false
}

// Finished reports whether the operation ended by itself: finished operations are the
// denominator of the success rate. Starved, Deadline, InFlight and Cancelled are censored.
func (o Outcome) Finished() bool { return o == OK || o.ServerFailure() }

// SumOutcomes sums the counts (by name) of the outcomes that are wanted.
func SumOutcomes(counts map[string]int64, wanted func(Outcome) bool) (n int64) {
	for i, name := range outcomeNames {
		if wanted(Outcome(i)) {
			n += counts[name]
		}
	}
	return n
}
