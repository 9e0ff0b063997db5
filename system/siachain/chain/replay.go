package chain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.sia.tech/core/consensus"
	"go.sia.tech/core/types"
	"go.sia.tech/coreutils/chain"
	"golang.org/x/sync/errgroup"
)

// How much coreutils' syncer requests at once; it defines the same constants.
const (
	headersAtOnce = 10_000
	blocksAtOnce  = 100
)

// Replay adds the chain's blocks to m, whose tip is one of them, as fast as possible. It takes the
// same steps as coreutils' syncer (syncer.parallelSync):
//
//   - Headers are validated, 10,000 at a time, and wait for the blocks of the headers before them.
//   - v1: blocks are compared with the headers and passed to AddBlocks, which validates them in the
//     context of the store.
//   - v2: each batch begins from a checkpoint, a state that its block commits to, and is validated on
//     its own while earlier batches are being added. AddValidatedV2Blocks then applies it again, to
//     the store. The first batch has no v2 block to begin from and is handled as in v1.
//
// Blocks come from the chain's file instead of from a peer. The measured time includes reading and
// decoding them, but not encoding them, the connection's encryption and framing, and decoding the
// copy of the checkpoint. workers is the number of batches that are read and validated at the same
// time, one for each peer.
func Replay(ctx context.Context, c *Chain, m *chain.Manager, workers int) error {
	from, shut, err := c.OpenReadOnly()
	if err != nil {
		return err
	}
	defer shut()
	for m.Tip() != c.Tip {
		r := replay{from: from, to: m, state: m.TipState(), workers: max(1, workers)}
		if err := r.span(ctx); err != nil {
			return fmt.Errorf("sia-chain: replay: after %d of %d blocks: %w", m.Tip().Height, c.Spec.Blocks, err)
		}
	}
	return nil
}

// replay adds the blocks after a state.
type replay struct {
	from, to *chain.Manager
	state    consensus.State
	workers  int // batches read and validated at the same time
}

// headers returns the next headers, validated.
func (r *replay) headers() ([]types.BlockHeader, error) {
	s := r.state
	headers, _, err := r.from.Headers(s.Index, headersAtOnce)
	if err == nil && len(headers) == 0 {
		err = fmt.Errorf("the store's tip %v is not the chain's, and nothing follows it", s.Index)
	}
	for _, h := range headers {
		if err := consensus.ValidateHeader(s, h); err != nil {
			return nil, fmt.Errorf("header %v: %w", h.ID(), err)
		}
		s = consensus.ApplyHeader(s, h, time.Time{})
	}
	return headers, err
}

// part is a batch that is being processed.
type part struct {
	base    types.ChainIndex // the block before it
	headers []types.BlockHeader
	blocks  []types.Block
	states  []consensus.State // after each block; nil in form v1
	ready   chan error
}

// ahead limits how many batches may wait to be added, and thus their memory.
const ahead = 16

// span reads and validates batches in parallel, and adds them in order.
func (r *replay) span(ctx context.Context) error {
	headers, err := r.headers()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	queue := make(chan *part, ahead)
	group.Go(func() error {
		defer close(queue)
		var fetching errgroup.Group
		defer fetching.Wait()
		fetching.SetLimit(r.workers)
		base := r.state.Index
		for headers := range slices.Chunk(headers, blocksAtOnce) {
			p := &part{base: base, headers: headers, ready: make(chan error, 1)}
			base = types.ChainIndex{Height: base.Height + uint64(len(headers)), ID: headers[len(headers)-1].ID()}
			select {
			case queue <- p:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			fetching.Go(func() error {
				p.ready <- r.fetch(p)
				return nil
			})
		}
		return nil
	})
	group.Go(func() error {
		for p := range queue {
			err := <-p.ready
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err == nil && p.states != nil:
				err = r.to.AddValidatedV2Blocks(p.blocks, p.states)
			case err == nil:
				err = r.to.AddBlocks(p.blocks)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// fetch reads a batch and, in form v2, validates it.
func (r *replay) fetch(p *part) (err error) {
	var state consensus.State
	v2 := p.base.Height >= r.state.Network.HardforkV2.RequireHeight
	if v2 {
		if state, err = r.checkpoint(p.base); err != nil {
			return err
		}
	}
	p.blocks, _, err = r.from.BlocksForHistory([]types.BlockID{p.base.ID}, uint64(len(p.headers)))
	if err != nil {
		return err
	}
	for i, b := range p.blocks {
		if (!v2 || i == len(p.blocks)-1) && b.ID() != p.headers[i].ID() {
			return fmt.Errorf("block %v is not that of its header", b.ID())
		}
		if !v2 {
			continue
		}
		if err := consensus.ValidateBlock(state, b, consensus.V1BlockSupplement{}); err != nil {
			return fmt.Errorf("block %v is invalid: %w", b.ID(), err)
		}
		state, _ = consensus.ApplyBlock(state, b, consensus.V1BlockSupplement{}, time.Time{})
		p.states = append(p.states, state)
	}
	return nil
}

// checkpoint returns the state after a v2 block. It is computed from the state before the block,
// which the block commits to.
func (r *replay) checkpoint(at types.ChainIndex) (consensus.State, error) {
	b, _ := r.from.Block(at.ID)
	s, ok := r.from.State(b.ParentID)
	if !ok || b.V2 == nil ||
		b.V2.Commitment != s.Commitment(b.MinerPayouts[0].Address, b.Transactions, b.V2Transactions()) {
		return s, fmt.Errorf("the checkpoint %v is not there, or commits to another state", at)
	}
	s.Network = r.state.Network
	s, _ = consensus.ApplyBlock(s, b, consensus.V1BlockSupplement{}, time.Time{})
	return s, nil
}
