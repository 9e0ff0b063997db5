package siachain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/siachain/chain"
)

// statePath is where a fresh node reports its progress: GET returns a system.Following.
const statePath = "/state"

// report is what the process of a finite task writes: its progress or its result.
type report struct {
	Say      string           `json:",omitempty"`
	Chain    *system.Chain    `json:",omitempty"`
	Replayed *system.Replayed `json:",omitempty"`
}

// task is the task of a process: its argument, as JSON.
type task struct {
	Control  string         // address of the control API
	Do       string         // make, replay, serve or follow
	Spec     chain.Spec     `json:",omitzero"`  // make
	Cache    string         `json:",omitempty"` // make: directory of the cached chains
	Chain    string         `json:",omitempty"` // all others: directory of the chain
	Listen   string         `json:",omitempty"` // serve, follow: address for the gateway protocol
	Manner   string         `json:",omitempty"` // serve
	Dir      string         `json:",omitempty"` // follow, replay: directory of the store
	Peers    []string       `json:",omitempty"` // follow: addresses
	Settings system.Options `json:",omitempty"` // follow, replay
}

// Serve implements system.Embedded: `plimsoll node sia-chain`. It does a finite task, or serves or
// follows with a control API until ctx ends. The end of the process also ends servers and followers:
// what they have committed is consistent at any time.
func (System) Serve(ctx context.Context, args []string, stdout, _ io.Writer) (err error) {
	var t task
	if err := member.Configure(args, &t); err != nil {
		return err
	}
	if t.Settings, err = (System{}).Info().Fill(t.Settings); err != nil {
		return err
	}
	if t.Listen == "" {
		return t.work(ctx, json.NewEncoder(stdout))
	}
	gateway, err := (&net.ListenConfig{}).Listen(ctx, "tcp", t.Listen)
	if err != nil {
		return fmt.Errorf("sia-chain: %w", err)
	}
	defer gateway.Close()
	state, err := t.begin(gateway)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+member.HealthPath, func(http.ResponseWriter, *http.Request) {})
	if state != nil {
		mux.HandleFunc("GET "+statePath, member.Answer(func(w http.ResponseWriter, _ *http.Request) error {
			return json.NewEncoder(w).Encode(state())
		}))
	}
	return member.Serve(ctx, name, stdout, member.Server{What: "control of " + t.Do, Address: t.Control, Handler: mux})
}

// begin starts to serve or to follow; state returns the progress of a fresh node.
func (t task) begin(gateway net.Listener) (state func() system.Following, err error) {
	c, err := chain.Open(t.Chain)
	switch {
	case err != nil:
		return nil, err
	case t.Do == "follow":
		return t.follow(c, gateway)
	case t.Manner == system.Honest:
		return nil, t.serve(c, gateway)
	}
	go t.refuse(c, gateway)
	return nil, nil
}

// work does a finite task. It writes its progress, then its result.
func (t task) work(ctx context.Context, to *json.Encoder) (err error) {
	var r report
	if t.Do == "make" {
		r.Chain, err = t.make(ctx, func(text string) { _ = to.Encode(report{Say: text}) })
	} else {
		r.Replayed, err = t.replay(ctx)
	}
	if err != nil {
		return err
	}
	return to.Encode(r)
}

// make returns the chain from the cache, or makes it.
func (t task) make(ctx context.Context, say func(string)) (*system.Chain, error) {
	tenth := -1
	c, err := chain.Get(ctx, t.Cache, t.Spec, func(done, total int) {
		if now := 10 * done / max(1, total); now != tenth {
			tenth = now
			say(fmt.Sprintf("making a chain of %d blocks with %d transactions each (%s): %d%%",
				total, t.Spec.Transactions, t.Spec.Form, 10*now))
		}
	})
	if err != nil {
		return nil, err
	}
	return &system.Chain{
		ID: c.Dir, Tip: c.Tip.ID.String(), Height: int64(c.Tip.Height), Bytes: c.Bytes,
		Transactions: c.Transactions,
		Disk:         c.StoreLimit() + indexFloor + indexByByte*c.Bytes + indexByBlock*int64(c.Tip.Height),
	}, nil
}

// replay validates a chain from its file, as a fresh node with these settings does, and waits for
// the subscriber. It uses one worker per processor, which is at least as fast as any number of
// peers.
func (t task) replay(ctx context.Context) (*system.Replayed, error) {
	c, err := chain.Open(t.Chain)
	if err != nil {
		return nil, err
	}
	store, err := chain.OpenStore(t.Dir, c.Spec.Network(), c.Spec.Genesis(), t.Settings["db_sync"] == "off")
	if err != nil {
		return nil, err
	}
	w, err := openWallet(t.Dir, t.Settings, store.Manager(), c.Spec.Watched())
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	from := store.Manager().Tip().Height
	began, cpu := time.Now(), timing.SelfCPU()
	err = chain.Replay(ctx, c, store.Manager(), runtime.GOMAXPROCS(0))
	for err == nil && w != nil && w.indexed.Load() < int64(c.Tip.Height) {
		if !timing.Pause(ctx, time.Millisecond) {
			err = context.Cause(ctx)
		}
	}
	done := &system.Replayed{
		Seconds: time.Since(began).Seconds(), CPU: timing.SelfCPU() - cpu, Blocks: int64(c.Tip.Height - from),
	}
	if w != nil {
		err = errors.Join(err, w.close())
	}
	return done, errors.Join(err, store.Close())
}

// walletFile is the subscriber's database in a node's directory, with walletd's name for it.
const walletFile = "walletd.sqlite3"

// Upper bounds of the disk space of a chain's full index. They were measured with 300 to 10,000
// blocks of 0 to 50 transactions in both forms: 4.4 to 4.7 times the size of blocks full of
// payments, and 1.2 kB for each empty block. The personal index takes less.
const (
	indexByByte  = 5
	indexByBlock = 2 << 10
	indexFloor   = 16 << 20 // an empty index, and SQLite's log, which grows to 8 MB
)
