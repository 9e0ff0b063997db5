package system

import (
	"context"
	"io"
)

// Member is a node of a system whose nodes get content from each other: a
// swarm. The nodes of such a cluster are one on each of Deployment.Hosts, all of
// the same kind; who has what is the experiment's choice.
//
// Nothing is known to a node but what it is given: no tracker, no DHT, no local
// discovery, unless an option of the system says so, and then only inside the
// cluster.
type Member interface {
	Node
	// Address is where other nodes of the cluster reach this one.
	Address(ctx context.Context) (string, error)
	// Publish puts content on this node's disk without a byte crossing a link
	// and serves it to the cluster when it returns. The same bytes and name give
	// the same ref on every node, so that there can be several seeders.
	Publish(ctx context.Context, name string, size int64, r io.Reader) (Ref, error)
	// Fetch has the node get the content of ref from the cluster, from the
	// nodes at the given addresses at first. It returns once the node has the
	// task, within moments; Progress says how far it is. Its data of ref that an
	// earlier fetch left on disk are used, if they are good.
	Fetch(ctx context.Context, ref Ref, from []string) error
	// Progress is how far this node is with ref. Cheap: it is asked several times
	// a second, and never walks the data.
	Progress(ctx context.Context, ref Ref) (Progress, error)
	// ReadBack writes the content as it is on this node's own disk (or in its own
	// store): what is verified. It never waits for peers.
	ReadBack(ctx context.Context, ref Ref, w io.Writer) error
	// Forget removes ref's data and task from this node.
	Forget(ctx context.Context, ref Ref) error
}

// Progress is how far a node is. What a system does not tell is −1.
type Progress struct {
	Size     int64  // bytes of the content; −1 until the node knows
	Verified int64  // bytes that the node has and has checked against their hashes
	Written  int64  // bytes of them that it says are on its disk
	Complete bool   // the node says that it has all
	Received int64  // payload bytes received for ref, duplicates included
	Sent     int64  // payload bytes sent for ref
	Peers    int    // connected for ref, seeds included
	Trouble  string // the node's own words of what keeps it from going on; empty: nothing
}

// Restarter is a node whose daemon can be started again after it was killed or
// stopped: on the data it left, or on none.
type Restarter interface {
	// Kill ends the node's processes at once (SIGKILL).
	Kill(ctx context.Context) error
	// Restart starts them again under the same address; without keep, on an
	// empty store.
	Restart(ctx context.Context, keep bool) error
}
