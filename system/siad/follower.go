package siad

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/chaincache"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// follower implements system.ChainNode with a siad that can run on a host as a peer or as the fresh
// node, always at the same addresses. Its methods must not be called concurrently, except Following
// and Processes.
type follower struct {
	daemon
	c       *chains
	home    string           // its directory when it is a peer
	serves  system.ServeTask // zero: it is no peer
	frozen  bool             // stopped by SIGSTOP, so that it handles no signal but SIGKILL
	joining member.Background

	mu       sync.Mutex
	peers    []system.PeerShare
	troubles []string // of each peer; empty if there is none
}

const retry = time.Second // pause after a failed connection to a peer

// Serve implements system.ChainNode. A peer runs only the modules that serve blocks.
func (n *follower) Serve(ctx context.Context, task system.ServeTask) error {
	if n.serves == task && n.Alive() == nil && ctx.Err() == nil {
		return nil
	}
	if err := n.serve(ctx, task); err != nil {
		return fmt.Errorf("siad: %s serves %s: %w", n.Host.Name(), task.Chain.ID, errors.Join(err, n.Kill(ctx)))
	}
	n.serves = task
	return nil
}

func (n *follower) serve(ctx context.Context, task system.ServeTask) error {
	if err := n.Halt(ctx); err != nil {
		return err
	}
	n.Dir = n.home
	files := n.Host.Files()
	if err := files.RemoveAll(n.Dir); err != nil { // including the peers that it knew
		return err
	}
	if err := copyFile(ctx, testbed.LocalFiles{}, filepath.Join(n.c.cache, task.Chain.ID), files,
		filepath.Join(n.Dir, "consensus")); err != nil {
		return err
	}
	if err := n.run(ctx, n.c.path, "gc", true); err != nil {
		return err
	}
	now, err := consensus(ctx, n.API)
	if err == nil && now.Tip.String() != task.Chain.Tip {
		err = fmt.Errorf("its last block is %s, not %s", now.Tip, task.Chain.Tip)
	}
	if err == nil && task.Manner == system.Silent {
		// The kernel still accepts connections for it, but nothing answers them.
		n.frozen = true
		err = n.Processes()[0].Signal(syscall.SIGSTOP)
	}
	return err
}

// Follow implements system.ChainNode. The node starts as any siad does: it asks its connected peers
// for blocks, one after another, until they have no more. Peers that its gateway remembers are
// removed from the directory, since they may not be among the task's. It connects to the task's
// peers in the background, because siad takes a while to connect to some of them. It does not count
// blocks or failures by peer.
func (n *follower) Follow(ctx context.Context, task system.FollowTask) error {
	fail := func(err error) error {
		return fmt.Errorf("siad: %s follows %s: %w", n.Host.Name(), task.Chain.ID, err)
	}
	opt, err := System{}.Info().Fill(task.Settings)
	if err != nil {
		return err
	}
	if err := n.Halt(ctx); err != nil {
		return fail(err)
	}
	n.Dir, n.serves = task.Dir, system.ServeTask{}
	if err := n.Host.Files().RemoveAll(filepath.Join(n.Dir, "gateway")); err != nil {
		return fail(err)
	}
	database := filepath.Join(n.Dir, "consensus", chaincache.Database)
	_, began := testbed.Stat(n.Host.Files(), database)
	if err := n.run(ctx, n.c.path, opt["modules"], false); err != nil {
		if began == nil && ctx.Err() == nil {
			err = fmt.Errorf("on a store that was there, which is perhaps damaged: %s stays as it is: %w", database,
				err)
		}
		return fail(err)
	}
	var work []func(context.Context)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.peers, n.troubles = nil, make([]string, len(task.Peers))
	for i, p := range task.Peers {
		n.peers = append(n.peers, system.PeerShare{Address: p, Blocks: -1})
		work = append(work, func(ctx context.Context) { n.connect(ctx, i, p) })
	}
	n.joining.Begin(work...)
	return nil
}

// connect connects to the i-th peer, and retries until it succeeds.
func (n *follower) connect(ctx context.Context, i int, peer string) {
	for {
		err := n.join(ctx, peer)
		n.mu.Lock()
		if n.troubles[i] = ""; err != nil {
			n.troubles[i] = err.Error()
		}
		n.mu.Unlock()
		if err == nil || !timing.Pause(ctx, retry) {
			return
		}
	}
}

// Following implements system.Follower. Subscribers to the chain receive each batch of blocks
// before siad asks for the next one (managedAcceptBlocks ends with updateSubscribers, under the
// lock), so none lags by more than a batch. siad does not report the lag: the answer describes the
// chain as if there were no subscribers.
func (n *follower) Following(ctx context.Context) (f system.Following, err error) {
	if err := n.Alive(); err != nil {
		return f, err
	}
	c, err := consensus(ctx, n.API)
	if err != nil {
		return f, err
	}
	var connected struct {
		Peers []struct{} `json:"peers"` // null when there are none
	}
	// asked second: a node that has the chain must have had a peer
	if err := n.API.Get(ctx, "/gateway", nil, &connected); err != nil {
		return f, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	f = system.Following{
		Height: c.Height, Tip: c.Tip.String(), Indexed: -1, Connected: len(connected.Peers), Commits: -1,
		TimedOut: -1, Failed: -1, Peers: slices.Clone(n.peers),
	}
	if f.Connected == 0 && !slices.Contains(n.troubles, "") { // no peer could be connected
		f.Trouble = strings.Join(n.troubles, "; ")
	}
	return f, nil
}

// Address implements system.ChainNode.
func (n *follower) Address(context.Context) (string, error) { return n.At[peers], nil }

// Halt implements system.ChainNode.
func (n *follower) Halt(ctx context.Context) error {
	if n.frozen {
		return n.Kill(ctx)
	}
	n.joining.Stop()
	return n.daemon.Stop(ctx)
}

// Stop implements group.Node.
func (n *follower) Stop(ctx context.Context) error { return n.Halt(ctx) }

// Kill implements system.ChainNode.
func (n *follower) Kill(ctx context.Context) error {
	n.joining.Stop()
	n.frozen = false
	return n.Process.Kill(ctx)
}
