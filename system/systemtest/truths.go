package systemtest

import (
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// Truths is what holds of one system and not of all. It is data that a test
// states beside its system, so that a reader sees in one place how a system
// differs; the zero value is a system which keeps the whole contract.
type Truths struct {
	// MinSize is the smallest object that the system takes; smaller ones must be refused.
	MinSize int64
	// Unknown are well-formed refs of objects that nobody stored; nil: "no-such-object".
	Unknown []system.Ref
	// Malformed are refs that no object can have, beyond those tried with every system.
	Malformed []system.Ref
	// Without are words of Info.Can which these options take away from the nodes.
	Without []string
	// ContentAddressed: the ref follows from the content, so that the same
	// content has the same ref and names are not kept.
	ContentAddressed bool
	// DeleteTakesShared: Delete takes blocks that other objects need.
	DeleteTakesShared bool
	// PutPassesServer: Put writes where the server reads, so that it goes on
	// when the server does not.
	PutPassesServer bool
	// InProcess: there are no processes that could be observed, stopped or killed.
	InProcess bool
	// HoldsObjects: the system's own processes hold whole objects in memory.
	HoldsObjects bool
	// Slow: a MiB, or to start, takes the system long. Cases whose point does not
	// need the bytes use fewer of them, and starting may take minutes.
	Slow bool
}

// startTime bounds the start of a deployment. A private chain with funds and
// contracts takes a minute or two to form.
func (s Suite) startTime() time.Duration {
	if s.Truths.Slow {
		return 10 * time.Minute
	}
	return 2 * time.Minute
}

// size is the amount that a case uses: little for a slow system.
func (s Suite) size(usual, slow int64) int64 {
	if s.Truths.Slow {
		return slow
	}
	return usual
}

// unknown are well-formed refs of nothing.
func (s Suite) unknown() []system.Ref {
	if s.Truths.Unknown == nil {
		return []system.Ref{"no-such-object"}
	}
	return s.Truths.Unknown
}
