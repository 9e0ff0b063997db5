package system

import (
	"context"
	"io"
)

// Member is a node of a swarm: a system whose nodes get content from each other. Such a cluster has
// one node on each of Deployment.Hosts, all of the same kind; the experiment decides which node has
// which content.
//
// A node knows only what it is given: no tracker, DHT or local discovery, unless an option of the
// system enables it, and then only inside the cluster.
type Member interface {
	Node
	// Address returns the address at which other nodes of the cluster reach this one.
	Address(ctx context.Context) (string, error)
	// Publish puts content on this node's disk without using a link; when it returns, the node
	// serves the content to the cluster. The same content and name give the same ref on every node,
	// so that there can be several seeders.
	Publish(ctx context.Context, name string, size int64, r io.Reader) (Ref, error)
	// Fetch makes the node get the content of ref from the cluster, initially from the nodes at the
	// given addresses. It returns within moments, once the node has accepted the task; Progress
	// reports how far it is. Valid data of ref left on disk by an earlier fetch is used.
	Fetch(ctx context.Context, ref Ref, from []string) error
	// Progress returns the progress of this node with ref. It must be cheap: it is called several
	// times a second, and never walks the data.
	Progress(ctx context.Context, ref Ref) (Progress, error)
	// ReadBack writes the content from this node's own disk or store, for verification. It never
	// waits for peers.
	ReadBack(ctx context.Context, ref Ref, w io.Writer) error
	// Forget removes the data and the task of ref from this node.
	Forget(ctx context.Context, ref Ref) error
}

// Progress is the progress of a node. A value that the system does not report is −1.
type Progress struct {
	Size     int64  // bytes of the content; −1 if the node does not know yet
	Verified int64  // bytes that the node has checked against their hashes
	Complete bool   // the node reports that it has all the content
	Received int64  // payload bytes received for ref, including duplicates
	Sent     int64  // payload bytes sent for ref
	Peers    int    // peers connected for ref, including seeds
	Trouble  string // the node's own description of what prevents progress; empty: nothing
}

// Restarter is a node whose daemon can be started again after it was killed or stopped, with or
// without the data it left.
type Restarter interface {
	// Kill ends the node's processes at once (SIGKILL).
	Kill(ctx context.Context) error
	// Restart starts the processes again under the same address; without keep, with an empty store.
	Restart(ctx context.Context, keep bool) error
}
