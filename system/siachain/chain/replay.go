package chain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.sia.tech/core/consensus"
	"go.sia.tech/core/types"
	"go.sia.tech/coreutils/chain"
	"golang.org/x/sync/errgroup"
)

// What coreutils' syncer asks for at once; constants there.
const (
	headersAtOnce = 10_000
	blocksAtOnce  = 100
)

// ReplayOptions say how a chain is replayed. The zero value is what the library's
// syncer does with one peer.
type ReplayOptions struct {
	Batch   int         // blocks that are asked for and added at once; 0: 100
	Workers int         // batches that are read and validated at once, one for each peer; 0: 1
	Each    func(Batch) // is told of each batch when it is added, in order; may be nil
}

// Batch is what a number of blocks took.
type Batch struct {
	First    uint64        // height of its first block
	Blocks   int           //
	Read     time.Duration // from the chain's file, decoding included
	Validate time.Duration // before they are added; 0 in form v1, where adding validates
	Add      time.Duration // to the store; commits included, and whoever is told of new blocks
}

// Replayed is what replaying a chain took.
type Replayed struct {
	Elapsed time.Duration // from the first header to the last block added
	Headers time.Duration // of it: reading and validating headers, before each ten thousand blocks
	Blocks  int
	Batches []Batch
}

// Replay adds the chain's blocks to m, whose tip is one of them, as fast as it can,
// by the same steps as coreutils' syncer (syncer.parallelSync):
//
//   - headers, ten thousand at a time, are validated and wait for the blocks of
//     those before them;
//   - v1: blocks are compared with the headers and go to AddBlocks, which validates
//     them in the context of the store;
//   - v2: each batch begins from a checkpoint, a state that its block commits to,
//     and is validated on its own, in parallel with the adding of those before it;
//     AddValidatedV2Blocks applies it once more, to the store. The first batch has
//     no v2 block to begin from and goes the way of v1.
//
// Blocks come from the chain's file instead of from a peer: reading and decoding
// them is in the time; encoding them, the connection's encryption and framing, and
// decoding of the checkpoint's copy are not.
func Replay(ctx context.Context, c *Chain, m *chain.Manager, o ReplayOptions) (Replayed, error) {
	if o.Batch <= 0 {
		o.Batch = blocksAtOnce
	}
	o.Workers = max(1, o.Workers)
	var done Replayed
	from, shut, err := c.OpenReadOnly()
	if err != nil {
		return done, err
	}
	defer shut()
	began := time.Now()
	for {
		state := m.TipState()
		if state.Index == c.Tip {
			done.Elapsed = time.Since(began)
			return done, nil
		}
		at := time.Now()
		headers, err := validHeaders(from, state)
		if err != nil {
			return done, fmt.Errorf("sia-chain: replay: %w", err)
		}
		done.Headers += time.Since(at)
		r := replay{from: from, to: m, state: state, headers: headers, ReplayOptions: o, done: &done}
		if err := r.span(ctx); err != nil {
			return done, fmt.Errorf("sia-chain: replay: after %d of %d blocks: %w", done.Blocks, c.Spec.Blocks, err)
		}
	}
}

// validHeaders are the next headers after a state, validated.
func validHeaders(from *chain.Manager, s consensus.State) ([]types.BlockHeader, error) {
	headers, _, err := from.Headers(s.Index, headersAtOnce)
	if err != nil {
		return nil, err
	}
	if len(headers) == 0 {
		return nil, fmt.Errorf("the store's tip %v is not the chain's, and nothing follows it", s.Index)
	}
	for _, h := range headers {
		if err := consensus.ValidateHeader(s, h); err != nil {
			return nil, fmt.Errorf("header %v: %w", h.ID(), err)
		}
		s = consensus.ApplyHeader(s, h, time.Time{})
	}
	return headers, nil
}

// replay adds the blocks of some headers that follow a state.
type replay struct {
	ReplayOptions
	from, to *chain.Manager
	state    consensus.State
	headers  []types.BlockHeader
	done     *Replayed
}

// part is a batch on its way.
type part struct {
	Batch
	base    types.ChainIndex // block before it
	headers []types.BlockHeader
	blocks  []types.Block
	states  []consensus.State // after each block; nil in form v1
	ready   chan struct{}
}

// ahead is how many batches may wait to be added: bounds what they take of the
// memory.
const ahead = 16

// span reads and validates batches in parallel, and adds them in order.
func (r *replay) span(ctx context.Context) error {
	var parts []*part
	base := r.state.Index
	for rest := r.headers; len(rest) > 0; {
		n := min(r.Batch, len(rest))
		parts = append(parts, &part{
			Batch:   Batch{First: base.Height + 1, Blocks: n},
			base:    base,
			headers: rest[:n],
			ready:   make(chan struct{}),
		})
		base = types.ChainIndex{Height: base.Height + uint64(n), ID: rest[n-1].ID()}
		rest = rest[n:]
	}
	group, ctx := errgroup.WithContext(ctx)
	work := make(chan *part)
	room := make(chan struct{}, ahead+r.Workers)
	group.Go(func() error {
		defer close(work)
		for _, p := range parts {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			select {
			case work <- p:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for range r.Workers {
		group.Go(func() error {
			for p := range work {
				if err := r.fetch(p); err != nil {
					return err
				}
				close(p.ready)
			}
			return nil
		})
	}
	group.Go(func() error {
		for _, p := range parts {
			select {
			case <-p.ready:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if ctx.Err() != nil { // both may have been so
				return context.Cause(ctx)
			}
			if err := r.add(p); err != nil {
				return err
			}
			<-room
		}
		return nil
	})
	return group.Wait()
}

// fetch reads a batch and, in form v2, validates it.
func (r *replay) fetch(p *part) error {
	at := time.Now()
	var state consensus.State
	v2 := p.base.Height >= r.state.Network.HardforkV2.RequireHeight
	if v2 {
		var err error
		if state, err = r.checkpoint(p.base); err != nil {
			return err
		}
	}
	var err error
	p.blocks, _, err = r.from.BlocksForHistory([]types.BlockID{p.base.ID}, uint64(p.Blocks))
	if err != nil {
		return err
	}
	p.Read = time.Since(at)
	if len(p.blocks) != p.Blocks {
		return fmt.Errorf("%d blocks follow %v instead of %d", len(p.blocks), p.base, p.Blocks)
	}
	if !v2 {
		for i := range p.blocks {
			if p.blocks[i].ID() != p.headers[i].ID() {
				return fmt.Errorf("block %d is not that of its header", p.First+uint64(i))
			}
		}
		return nil
	}
	if last := p.blocks[p.Blocks-1].ID(); last != p.headers[p.Blocks-1].ID() {
		return fmt.Errorf("block %v is not that of its header", last)
	}
	at = time.Now()
	for _, b := range p.blocks {
		if err := consensus.ValidateBlock(state, b, consensus.V1BlockSupplement{}); err != nil {
			return fmt.Errorf("block %v is invalid: %w", b.ID(), err)
		}
		state, _ = consensus.ApplyBlock(state, b, consensus.V1BlockSupplement{}, time.Time{})
		p.states = append(p.states, state)
	}
	p.Validate = time.Since(at)
	return nil
}

// checkpoint is the state after a v2 block, by the state before it, which the
// block commits to.
func (r *replay) checkpoint(at types.ChainIndex) (consensus.State, error) {
	b, ok := r.from.Block(at.ID)
	s, ok2 := r.from.State(b.ParentID)
	switch {
	case !ok || !ok2:
		return s, fmt.Errorf("checkpoint %v is missing", at)
	case b.V2 == nil || len(b.MinerPayouts) != 1:
		return s, errors.New("checkpoint is not a v2 block")
	case b.V2.Commitment != s.Commitment(b.MinerPayouts[0].Address, b.Transactions, b.V2Transactions()):
		return s, errors.New("checkpoint has wrong commitment")
	}
	s.Network = r.state.Network
	s, _ = consensus.ApplyBlock(s, b, consensus.V1BlockSupplement{}, time.Time{})
	return s, nil
}

// add adds a batch to the store.
func (r *replay) add(p *part) error {
	at := time.Now()
	var err error
	if p.states != nil {
		err = r.to.AddValidatedV2Blocks(p.blocks, p.states)
	} else {
		err = r.to.AddBlocks(p.blocks)
	}
	if err != nil {
		return err
	}
	p.Add = time.Since(at)
	p.headers, p.blocks, p.states = nil, nil, nil
	r.done.Blocks += p.Blocks
	r.done.Batches = append(r.done.Batches, p.Batch)
	if r.Each != nil {
		r.Each(p.Batch)
	}
	return nil
}
