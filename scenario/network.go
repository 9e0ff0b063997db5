package scenario

import (
	"context"

	"github.com/plimsoll-project/plimsoll/record"
)

// Network is the links of a swarm. Nodes are counted as in Cluster.Nodes: each
// has a host of its own, whose access link is shaped as the cell says. What a
// trial changes is undone by the engine when the trial ends.
type Network interface {
	// Change makes the links what the cell says but for these changes, which
	// replace all earlier ones: no changes bring back what the cell says. It
	// returns once they are in force.
	Change(ctx context.Context, c NetworkChange) error
	// Check measures the link between two nodes as it is now.
	Check(ctx context.Context, from, to int) (record.LinkCheck, error)
	// Traffic is what has crossed the access link of each node since the run began,
	// in bytes of IP packets as they are on the wire; what the link then dropped was
	// sent and not received. NaN where it cannot be measured.
	Traffic(ctx context.Context) []Traffic
	// Emulated is false where links are not emulated on this machine; why says it.
	Emulated() (ok bool, why string)
}

// NetworkChange is how the links of a swarm differ from what the cell says.
type NetworkChange struct {
	Rates map[int]Rates // of single nodes
	Apart []int         // nodes that reach one another and none of the others; empty: no partition
}

// Rates of a node's access link on the wire, bit/s; 0: as the cell says.
type Rates struct{ Up, Down float64 }

// Traffic is what has crossed a link towards its node and from it, in bytes.
type Traffic struct{ Received, Sent float64 }
