package record

import (
	"fmt"
	"slices"
)

// Op is one operation as seen by the load generator. All times are nanoseconds on the
// monotonic clock since the trial's epoch (Trial.Epoch).
type Op struct {
	Kind      OpKind
	Outcome   Outcome
	Status    uint16 // protocol status (HTTP), 0 when none came
	Worker    uint32 // the connection slot or virtual user
	Object    uint32 // index into the trial's objects
	Offset    int64  // first requested byte
	Length    int64  // requested bytes; −1: all, of unknown size
	Bytes     int64  // body bytes received (or sent)
	Intended  int64  // intended start by the arrival process; equals Start in a closed loop
	Start     int64  // actual start (before the dial, if it needed a fresh connection)
	FirstByte int64  // arrival of the first byte of the body; 0 if none came
	LastByte  int64  // arrival of the last byte, or when the outcome was decided
	Class     string // short class of the error ("connection reset", "status 500"); empty when ok
}

// OpKind is what an operation did.
type OpKind uint8

const (
	OpGet        OpKind = iota // a whole object
	OpRange                    // a byte range of an object
	OpPut                      // an object written
	OpStat                     // metadata only
	OpDelete                   // an object removed
	OpPutDurable               // an object written, until it has its full redundancy
	OpPutDir                   // an object written and entered into a directory
	OpUpdate                   // the content of a mutable object replaced
	OpFetch                    // content got from a swarm by one leecher, until its last verified byte
	_                          // once in runs of sync: until the node had the chain
	OpServe                    // a fresh node that gets a chain of blocks from its peers, until it can serve
	OpWarmup                   // a request that warmed up a kept connection before the window; it is not counted
	numOpKinds
)

var opKindNames = [...]string{"get", "range", "put", "stat", "delete", "put-durable", "put-dir", "update", "fetch",
	"sync", "serve", "warm-up"}

func (k OpKind) String() string {
	if int(k) < len(opKindNames) {
		return opKindNames[k]
	}
	return "unknown"
}

// receives reports whether a successful operation of the kind receives a first byte.
func (k OpKind) receives() bool {
	switch k {
	case OpPut, OpPutDurable, OpPutDir, OpDelete, OpStat:
		return false
	}
	return true
}

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
	Stalled    // no byte arrived within the stall limit
	Deadline   // the operation's deadline passed before its last byte came
	InFlight   // not finished at the end of the window
	Cancelled  // stopped by the user or an exit condition
	Starved    // no byte arrived within the stall limit while other operations filled the link
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
