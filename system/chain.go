package system

import (
	"context"
)

// Chains is a cluster of a system whose nodes hold a chain of blocks and get it
// from each other. Its nodes are [ChainNode]s, one on each of Deployment.Hosts, in
// their order; nothing runs on a host before Serve or Follow is called there.
type Chains interface {
	Cluster
	// Chain makes sure that a chain is there to be served, and describes it. One
	// that was made before, by the same version, is taken from Deployment.Cache. It takes as
	// long as the chain is long, and says how far it is.
	Chain(ctx context.Context, spec ChainSpec, say func(text string)) (Chain, error)
}

// Replayer is a [Chains] that can validate a chain without peers.
type Replayer interface {
	// Replay validates the chain once more on the first host, from a local file, as
	// fast as the machine can: no network, no waits, the same blocks, the same
	// consensus code and the same store in task.Dir as by Follow. The process is
	// ended when it returns. Options that concern the network (Option.Network) do not
	// matter.
	Replay(ctx context.Context, task FollowTask) (Replayed, error)
}

// ChainSpec says which chain is wanted. The same spec gives the same blocks.
type ChainSpec struct {
	Blocks       int    // after the first, which both sides know (genesis)
	Transactions int    // in each block
	Form         string // of blocks and transactions, in the system's words: "v1", "v2"
	Seed         uint64
}

// Chain is one that is there.
type Chain struct {
	ID           string // names it towards the cluster
	Tip          string // identity of its last block, as Following.Tip says it
	Height       int64  // of its last block; that of the first is 0
	Bytes        int64  // of its blocks as they are sent, framing aside
	Transactions int64  // in all of its blocks
	Disk         int64  // bytes of a node's store that has all of it, at most: what a RAM disk must hold; 0: not known
	Built        bool   // it was made just now
}

// Follower is a node that follows a chain: a [ChainNode], or one that was attached to and
// is only observed.
type Follower interface {
	Node
	// Following is how far the node is. Cheap: it is asked many times a second.
	Following(ctx context.Context) (Following, error)
}

// ChainNode is a node of a [Chains] cluster.
type ChainNode interface {
	Follower
	// Serve makes the node a peer that has the whole chain, and returns when it can
	// be connected to. Where it serves the same with the same settings already, it
	// goes on; else it is started anew.
	Serve(ctx context.Context, task ServeTask) error
	// Follow starts the node on what is in task.Dir, which is empty for a fresh one,
	// and gives it its peers. It returns as soon as the node answers Following,
	// which may be before it has a peer. A store that is damaged is an error that
	// names it; it stays as it is.
	Follow(ctx context.Context, task FollowTask) error
	// Address is where peers reach the node that serves.
	Address(ctx context.Context) (string, error)
	// Halt ends the node's process in its own way, Kill at once (SIGKILL). Both are
	// no error when nothing runs.
	Halt(ctx context.Context) error
	Kill(ctx context.Context) error
}

// Manners of a peer.
const (
	Honest   = ""         // it does as the protocol says
	Silent   = "silent"   // it takes connections and answers nothing
	Stranger = "stranger" // it has another chain, from another first block
)

// ServeTask is what a peer does.
type ServeTask struct {
	Chain    Chain
	Manner   string  // one of the constants
	Settings Options // of the system; what concerns a fresh node does not matter
}

// FollowTask is what a fresh node does.
type FollowTask struct {
	Chain    Chain
	Dir      string // of the node's store; exists
	Peers    []string
	Settings Options // of the system; what concerns peers does not matter
}

// Following is how far a node is. What a system does not tell is −1.
type Following struct {
	Height    int64  // of its best block
	Tip       string // identity of that block
	Indexed   int64  // height up to which everything that subscribes to the chain has followed; −1: nothing subscribes
	Connected int    // peers
	Commits   int64  // transactions that its stores have committed, each at least one fsync where those are on; −1
	Peers     []PeerShare
	// Requests for blocks that timed out, and that failed for other reasons, of all
	// peers: also those of which it is not known whose they were; −1.
	TimedOut, Failed int64
	Trouble          string // the node's own words of what keeps it from going on; empty: nothing
}

// PeerShare is what a node has got from one of its peers.
type PeerShare struct {
	Address string
	Blocks  int64 // that it delivered; those that came twice count once where the node counts so; −1: not known
}

// Replayed is what validating a whole chain took.
type Replayed struct {
	Seconds float64 // from the first block to the last, subscribers included
	CPU     float64 // seconds, in that time
	Blocks  int64
}

// Constant is a number that decides about results and cannot be set: it is in the
// code of the system. Reports say it instead of leaving it out.
type Constant struct {
	Name  string `json:"name"`  // "blocks per request"
	Value string `json:"value"` // "100"
	What  string `json:"what"`  // what it decides, and where it is in the code: one sentence
}
