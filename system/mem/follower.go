package mem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Follower is a node that follows a chain of blocks, or serves one.
type Follower struct {
	cluster *chains
	place   int
	address string

	// Under the lock of the cluster:
	stopped  bool
	serves   *system.ServeTask // nil: it serves nothing
	run      *following        // nil: it follows nothing
	received float64           // bytes that crossed its link
	sent     float64
}

// storeFile is the file in a node's directory that says how far it has come.
const storeFile = "mem-chain.json"

// kept is what is in it.
type kept struct {
	Chain           string
	Height, Indexed int64
	Check           string // identity of the best block
}

var errNotRunning = errors.New("the node does not run")

// in locks the cluster for a call of this node, up to the present; out ends it.
func (n *Follower) in(ctx context.Context, what string) (out func(), err error) {
	c := n.cluster
	c.mu.Lock()
	c.advance()
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case n.stopped:
		err = errStopped
	}
	if err != nil {
		c.mu.Unlock()
		return nil, fmt.Errorf("mem: %s: %w", what, err)
	}
	return c.mu.Unlock, nil
}

// SetLinks changes the links of the whole cluster, from the next request on.
func (n *Follower) SetLinks(l Links) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.cluster.advance()
	n.cluster.links = l
}

// Moved is what has crossed the node's link until now, in bytes: that of requests
// which were given up included, as far as they had come.
func (n *Follower) Moved() (received, sent float64) {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.cluster.advance()
	return n.received, n.sent
}

// Serve implements system.ChainNode.
func (n *Follower) Serve(ctx context.Context, task system.ServeTask) error {
	if _, err := n.cluster.model(task.Settings); err != nil {
		return err
	}
	out, err := n.in(ctx, "serve")
	if err != nil {
		return err
	}
	defer out()
	if n.run != nil {
		return errors.New("mem: serve: the node follows a chain")
	}
	n.serves = &task
	return nil
}

// Address implements system.ChainNode.
func (n *Follower) Address(ctx context.Context) (string, error) { return n.address, ctx.Err() }

// Follow implements system.ChainNode.
func (n *Follower) Follow(ctx context.Context, task system.FollowTask) error {
	m, err := n.cluster.model(task.Settings)
	if err != nil {
		return err
	}
	had, err := load(task)
	if err != nil {
		return err
	}
	out, err := n.in(ctx, "follow")
	if err != nil {
		return err
	}
	defer out()
	c := n.cluster
	if n.serves != nil || n.run != nil {
		return errors.New("mem: follow: the node runs already")
	}
	rng := c.draw()
	n.run = &following{
		node: n, task: task, model: m, rng: rng, factor: math.Exp(m.noise * rng.NormFloat64()),
		height: had.Height, indexed: had.Indexed, at: c.now(),
	}
	for _, address := range task.Peers {
		n.run.peers = append(n.run.peers, &source{
			node:  slices.IndexFunc(c.nodes, func(n *Follower) bool { return n.address == address }),
			share: system.PeerShare{Address: address},
		})
	}
	n.run.batch = had.Height - had.Indexed // what an earlier start has not come to index
	n.run.wait(indexing, n.run.factor*m.index*float64(n.run.batch))
	return nil
}

// load reads how far a store is; an empty directory is at the first block.
func load(task system.FollowTask) (kept, error) {
	path := filepath.Join(task.Dir, storeFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return kept{}, nil
	}
	if err != nil {
		return kept{}, fmt.Errorf("mem: follow: %w", err)
	}
	var k kept
	if err := json.Unmarshal(b, &k); err != nil || k.Check != blockID(k.Chain, k.Height) {
		return kept{}, fmt.Errorf("mem: follow: the store %s is damaged", path)
	}
	if k.Chain != task.Chain.ID {
		return kept{}, fmt.Errorf("mem: follow: the store %s is of another chain", path)
	}
	return k, nil
}

// Following implements system.Follower.
func (n *Follower) Following(ctx context.Context) (system.Following, error) {
	out, err := n.in(ctx, "following")
	if err != nil {
		return system.Following{}, err
	}
	defer out()
	if n.run == nil {
		return system.Following{}, fmt.Errorf("mem: following: %w", errNotRunning)
	}
	return n.run.look(), nil
}

// end ends what the node does. What of a chain it has got stays in its directory.
func (n *Follower) end(ctx context.Context, what string) error {
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.cluster.advance()
	n.serves = nil
	run := n.run
	if n.run = nil; run == nil {
		return ctx.Err()
	}
	height, indexed := run.whole()
	b, err := json.Marshal(kept{run.task.Chain.ID, height, indexed, blockID(run.task.Chain.ID, height)})
	if err == nil {
		err = os.WriteFile(filepath.Join(run.task.Dir, storeFile), b, 0o600)
	}
	if errors.Is(err, fs.ErrNotExist) { // the directory was removed before
		err = nil
	}
	if err != nil {
		return fmt.Errorf("mem: %s: %w", what, err)
	}
	return ctx.Err()
}

// Halt implements system.ChainNode.
func (n *Follower) Halt(ctx context.Context) error { return n.end(ctx, "halt") }

// Kill implements system.ChainNode. There is nothing that is not committed.
func (n *Follower) Kill(ctx context.Context) error { return n.end(ctx, "kill") }

// Processes implements system.Node: there are none.
func (n *Follower) Processes() []testbed.Process { return nil }

// Stop implements group.Node.
func (n *Follower) Stop(ctx context.Context) error {
	if err := n.end(ctx, "stop"); err != nil {
		return err
	}
	n.cluster.mu.Lock()
	defer n.cluster.mu.Unlock()
	n.stopped = true
	return nil
}
