package system

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Chains is a cluster of nodes that hold a blockchain and download it from each other. Its nodes
// are [ChainNode]s, one on each of Deployment.Hosts, in the same order; nothing runs on a host
// before Serve or Follow is called there.
type Chains interface {
	Cluster
	// Chain makes sure that a chain is available to be served, and describes it. A chain that the
	// same version built before is taken from Deployment.Cache. Building takes time in proportion
	// to the length of the chain; say receives its progress.
	Chain(ctx context.Context, spec ChainSpec, say func(text string)) (Chain, error)
}

// Replayer is a [Chains] that can validate a chain without peers.
type Replayer interface {
	// Replay validates the chain on the first host from a local file, as fast as the machine can:
	// no network and no waits, but the same blocks, consensus code and store in task.Dir as with
	// Follow. The process has ended when Replay returns. Options that concern the network
	// (Option.Network) have no effect.
	Replay(ctx context.Context, task FollowTask) (Replayed, error)
}

// ChainSpec describes a chain. Equal specs give equal blocks.
type ChainSpec struct {
	Blocks       int    // without the genesis block, which both sides know
	Transactions int    // in each block
	Form         string // of blocks and transactions, in the system's terms: "v1", "v2"
	Seed         uint64
}

// Chain is an available chain.
type Chain struct {
	ID           string // identifies the chain within the cluster
	Tip          string // ID of the last block, in the form of Following.Tip
	Height       int64  // of the last block; the genesis block has 0
	Bytes        int64  // of its blocks as sent, without framing
	Transactions int64  // in all blocks
	Disk         int64  // most bytes in the store of a node with the whole chain: the size of a RAM disk
}

// Follower is a node that follows a chain: a [ChainNode], or an attached node that is only
// observed.
type Follower interface {
	Node
	// Following returns the node's progress. It must be cheap: it is called many times a second.
	Following(ctx context.Context) (Following, error)
}

// ChainNode is a node of a [Chains] cluster.
type ChainNode interface {
	Follower
	// Serve makes the node a peer that has the whole chain, and returns when the node accepts
	// connections. A node that already serves the same chain in the same manner keeps running;
	// otherwise it is restarted.
	Serve(ctx context.Context, task ServeTask) error
	// Follow starts the node on the data in task.Dir, which is empty for a fresh node, and gives it
	// its peers. It returns as soon as the node answers Following, possibly before a peer is
	// connected. If the store is damaged, the error names it, and the store is left unchanged.
	Follow(ctx context.Context, task FollowTask) error
	// Address returns the address at which peers reach the serving node.
	Address(ctx context.Context) (string, error)
	// Halt shuts the node's process down cleanly; Kill ends it at once (SIGKILL). Neither fails if
	// nothing runs.
	Halt(ctx context.Context) error
	Kill(ctx context.Context) error
}

// Behaviours of a peer.
const (
	Honest   = ""         // follows the protocol
	Silent   = "silent"   // accepts connections and never answers
	Stranger = "stranger" // has another chain with another genesis block
)

// ServeTask describes what a peer serves, and how.
type ServeTask struct {
	Chain  Chain
	Manner string // one of the constants
}

// FollowTask describes what a fresh node follows.
type FollowTask struct {
	Chain    Chain
	Dir      string // of the node's store; exists
	Peers    []string
	Settings Options // of the system; those that concern peers have no effect
}

// Following is the progress of a node. A value that the system does not report is −1.
type Following struct {
	Height    int64  // of its best block
	Tip       string // ID of that block
	Indexed   int64  // height that all subscribers of the chain have reached; −1: no subscribers
	Connected int    // number of connected peers
	Commits   int64  // transactions committed by its stores, each at least one fsync unless fsync is off; −1
	Peers     []PeerShare
	// Requests for blocks that timed out or failed for other reasons, over all peers, including
	// requests that cannot be attributed to a peer; −1.
	TimedOut, Failed int64
	Trouble          string // the node's own description of what prevents progress; empty: nothing
}

// PeerShare is the data that a node has received from one of its peers.
type PeerShare struct {
	Address string
	Blocks  int64 // delivered blocks; duplicates count once if the node counts so; −1: unknown
}

// Replayed is the cost of validating a whole chain.
type Replayed struct {
	Seconds float64 // from the first block to the last, subscribers included
	CPU     float64 // seconds, in that time
	Blocks  int64
}

// Constant is a number that affects results and cannot be configured, because it is in the code of
// the system. Reports state it.
type Constant struct {
	Name  string `json:"name"`  // "blocks per request"
	Value string `json:"value"` // "100"
	What  string `json:"what"`  // what it decides, and where it is in the code: one sentence
}

// ChainLimits are the chains and peers that a system supports. The zero value supports all.
type ChainLimits struct {
	Forms        []string // of ChainSpec.Form; empty: any
	Blocks       int      // at most; 0: no limit
	Transactions int      // in a block, at most; 0: no limit, −1: none possible
	Without      []string // manners that are not supported
}

// Problems reports why a chain of that spec, or peers with these manners, are not possible.
func (l ChainLimits) Problems(spec ChainSpec, manners []string) (all []Problem) {
	wrong := func(hint, format string, args ...any) {
		all = append(all, Problem{What: fmt.Sprintf(format, args...), Hint: hint})
	}
	if len(l.Forms) > 0 && !slices.Contains(l.Forms, spec.Form) {
		wrong("use sync.form: "+l.Forms[0], "it has no chain of the form %s; it has %s", spec.Form,
			strings.Join(l.Forms, " and "))
	}
	if l.Blocks > 0 && spec.Blocks > l.Blocks {
		wrong(fmt.Sprintf("use sync.blocks: %d, or less", l.Blocks), "it has no chain of %d blocks; %d are the most",
			spec.Blocks, l.Blocks)
	}
	if most := max(0, l.Transactions); l.Transactions != 0 && spec.Transactions > most {
		wrong(fmt.Sprintf("use sync.transactions: %d", most), "its blocks cannot be given %d transactions; %d are "+
			"the most", spec.Transactions, most)
	}
	for _, m := range manners {
		if slices.Contains(l.Without, m) {
			wrong(fmt.Sprintf("take `%s` out of sync.trouble", m), "none of its peers can be a %s one", m)
		}
	}
	return all
}
