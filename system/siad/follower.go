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

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/chaincache"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// follower implements system.ChainNode: a siad that may run on a host, as a peer or as
// the fresh node. Its calls come one after another, but for Following.
type follower struct {
	c    *chains
	host testbed.Host
	role string
	at   string // where peers connect to it as a peer, also after it was started again

	mu      sync.Mutex // of what follows
	d       *daemon    // also when it has ended; nil: none was started
	runs    bool
	serves  string      // what a peer does; empty: it is the fresh node
	frozen  bool        // it was stopped, and takes no signal but SIGKILL
	network sia.Network // of d
	peers   []system.PeerShare
	joining member.Background
}

const (
	portTries = 3
	retry     = time.Second // after a peer could not be connected to
)

// start runs a siad, in place of what ran.
func (n *follower) start(ctx context.Context, l launch) (*daemon, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if err := n.Halt(ctx); err != nil {
		return nil, err
	}
	d, err := startDaemon(ctx, n.host, l)
	for range portTries {
		// Between our choice of a port and siad's use of it, a connection of some
		// process may have got it as its own end.
		if err == nil || !strings.Contains(err.Error(), "address already in use") {
			break
		}
		d, err = startDaemon(ctx, n.host, l)
	}
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.d, n.runs, n.serves, n.frozen, n.peers = d, true, "", false, nil
	n.network = sia.Network{}
	n.network.Add(&d.Daemon)
	n.network.Watch()
	return d, nil
}

// Serve implements system.ChainNode. A peer has the modules that serve blocks.
func (n *follower) Serve(ctx context.Context, task system.ServeTask) error {
	fail := func(err error) error {
		return fmt.Errorf("siad: %s serves %s: %w", n.host.Name(), task.Chain.ID, err)
	}
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
	}
	serves := task.Chain.ID + " " + task.Manner + "."
	if n.runs && n.serves == serves && n.d.Alive() == nil {
		return nil
	}
	if err := n.Halt(ctx); err != nil {
		return err
	}
	root, files := filepath.Join(n.c.d.DirOf(n.host), n.role), n.host.Files()
	if err := files.RemoveAll(root); err != nil { // with whom it knew
		return fail(err)
	}
	if err := copyFile(ctx, testbed.LocalFiles{}, n.c.chainDir(task.Chain.ID), files,
		filepath.Join(root, "consensus")); err != nil {
		return fail(err)
	}
	d, err := n.start(ctx, launch{bin: n.c.bin, role: n.role, root: root, modules: "gc", rpc: n.at, alone: true})
	if err != nil {
		return fail(err)
	}
	n.at, n.serves = d.rpc, serves
	now, err := d.api.consensus(ctx)
	if err == nil && now.tip.String() != task.Chain.Tip {
		err = fmt.Errorf("its last block is %s, not %s", now.tip, task.Chain.Tip)
	}
	if err == nil && task.Manner == system.Silent {
		// The kernel goes on taking connections for it, without an answer them.
		n.frozen = true
		err = d.Processes()[0].Signal(syscall.SIGSTOP)
	}
	if err != nil {
		return fail(errors.Join(err, n.Kill(ctx)))
	}
	return nil
}

// Follow implements system.ChainNode. The node starts as any does: it asks those
// that it has connected to for blocks, one after another, until they have no
// more. What its gateway remembers of peers is removed from the directory: they
// would be others than the task's.
func (n *follower) Follow(ctx context.Context, task system.FollowTask) error {
	fail := func(err error) error {
		return fmt.Errorf("siad: %s follows %s: %w", n.host.Name(), task.Chain.ID, err)
	}
	opt, err := System{}.Info().Fill(task.Settings)
	if err != nil {
		return err
	}
	modules, err := modulesOf(opt)
	if err != nil {
		return err
	}
	if err := n.Halt(ctx); err != nil {
		return err
	}
	if err := n.host.Files().RemoveAll(filepath.Join(task.Dir, "gateway")); err != nil {
		return fail(err)
	}
	database := filepath.Join(task.Dir, "consensus", chaincache.Database)
	_, began := testbed.Stat(n.host.Files(), database)
	d, err := n.start(ctx, launch{bin: n.c.bin, role: n.role, root: task.Dir, modules: modules})
	if err != nil {
		if began == nil && ctx.Err() == nil {
			err = fmt.Errorf("on a store that was there, which is perhaps damaged: %s stays as it is: %w", database,
				err)
		}
		return fail(err)
	}
	n.follow(d, task.Peers)
	return nil
}

// follow connects to peers in the background: siad waits for some of them. It counts
// nothing by peer.
func (n *follower) follow(d *daemon, peers []string) {
	var work []func(context.Context)
	n.mu.Lock()
	for i, p := range peers {
		n.peers = append(n.peers, system.PeerShare{Address: p, Blocks: -1, Bytes: -1, Busy: -1, Requests: -1,
			TimedOut: -1, Failed: -1})
		work = append(work, func(ctx context.Context) {
			for {
				err := d.join(ctx, p)
				n.mu.Lock()
				if n.peers[i].Trouble = ""; err != nil {
					n.peers[i].Trouble = err.Error()
				}
				n.mu.Unlock()
				if err == nil || !member.Sleep(ctx, retry) {
					return
				}
			}
		})
	}
	n.mu.Unlock()
	n.joining.Begin(work...)
}

// Following implements system.Follower.
func (n *follower) Following(ctx context.Context) (system.Following, error) {
	n.mu.Lock()
	d, runs, peers := n.d, n.runs, slices.Clone(n.peers)
	n.mu.Unlock()
	if !runs {
		return system.Following{}, fmt.Errorf("siad: nothing runs on %s", n.host.Name())
	}
	f, err := d.api.following(ctx)
	if err != nil {
		return f, err
	}
	f.Peers = peers
	var troubles []string
	for _, p := range peers {
		if p.Trouble != "" {
			troubles = append(troubles, p.Trouble)
		}
	}
	if f.Connected == 0 && len(troubles) == len(peers) { // none of them is of use
		f.Trouble = strings.Join(troubles, "; ")
	}
	return f, nil
}

// Address implements system.ChainNode.
func (n *follower) Address(context.Context) (string, error) {
	if n.runs && n.serves != "" {
		return n.at, nil
	}
	return "", fmt.Errorf("siad: %s does not serve peers", n.host.Name())
}

// Halt implements system.ChainNode.
func (n *follower) Halt(ctx context.Context) error {
	n.mu.Lock()
	ran := n.runs
	n.runs = false
	n.mu.Unlock()
	if !ran {
		return nil
	}
	n.joining.Stop()
	if n.frozen {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		cancel() // a stop without time is SIGKILL
	}
	if err := n.network.Stop(ctx); err != nil {
		return fmt.Errorf("siad: end %s: %w", n.role, err)
	}
	return nil
}

// Stop implements group.Node.
func (n *follower) Stop(ctx context.Context) error { return n.Halt(ctx) }

// Kill implements system.ChainNode.
func (n *follower) Kill(context.Context) error {
	now, cancel := context.WithCancel(context.Background())
	cancel() // a stop without time is SIGKILL
	return n.Halt(now)
}

// Processes implements system.Node.
func (n *follower) Processes() []testbed.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.d == nil {
		return nil
	}
	return n.d.Processes()
}
