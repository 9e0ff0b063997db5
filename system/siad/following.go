package siad

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"go.sia.tech/core/types"

	"github.com/plimsoll-project/plimsoll/system"
)

// consensusState is an answer of /consensus that was looked through.
type consensusState struct {
	consensusAnswer
	height int64
	tip    types.BlockID
}

// consensus asks how far the daemon is.
func (a *api) consensus(ctx context.Context) (c consensusState, err error) {
	if err := a.Get(ctx, "/consensus", nil, &c.consensusAnswer); err != nil {
		return c, err
	}
	if c.height, err = heightOf(c.Height); err != nil {
		return c, fmt.Errorf("siad: GET /consensus of %s: %w: %w", a.Base.Host, err, system.ErrAnswer)
	}
	if err := c.tip.UnmarshalText([]byte(c.CurrentBlock)); err != nil {
		return c, fmt.Errorf("siad: GET /consensus of %s: %.80q is no block's identity: %w", a.Base.Host,
			c.CurrentBlock, system.ErrAnswer)
	}
	return c, nil
}

// heightOf is a number of blocks. Heights have been seen to underflow.
func heightOf(n json.Number) (int64, error) {
	h, err := strconv.ParseUint(n.String(), 10, 64)
	if err != nil || h > math.MaxInt64 {
		return 0, fmt.Errorf("%.40q is no height", n.String())
	}
	return int64(h), nil
}

// following is how far a daemon is. Subscribers to the chain receive each batch of
// blocks before siad asks for the next one (managedAcceptBlocks ends with
// updateSubscribers, under the lock), so that none lags by more than a batch. siad
// does not report by how much: the answer is as if nothing subscribed.
func (a *api) following(ctx context.Context) (system.Following, error) {
	c, err := a.consensus(ctx)
	if err != nil {
		return system.Following{}, err
	}
	var g gatewayAnswer // asked second: who has the chain had a peer
	if err := a.Get(ctx, "/gateway", nil, &g); err != nil {
		return system.Following{}, err
	}
	return system.Following{
		Height: c.height, Tip: c.tip.String(), Indexed: -1, Connected: len(g.Peers), Commits: -1, TimedOut: -1,
		Failed: -1,
	}, nil
}
