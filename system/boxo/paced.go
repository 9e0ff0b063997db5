package boxo

import (
	"context"

	bsmsg "github.com/ipfs/boxo/bitswap/message"
	bsnet "github.com/ipfs/boxo/bitswap/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"golang.org/x/time/rate"
)

// burst is the largest message that passes a limit, and what passes at once:
// more than a block.
const burst = 2 << 20

// paced is a network that sends blocks at a limited rate.
type paced struct {
	bsnet.BitSwapNetwork
	limit *rate.Limiter
}

// SendMessage implements network.BitSwapNetwork; blocks are sent through it.
func (p paced) SendMessage(ctx context.Context, to peer.ID, m bsmsg.BitSwapMessage) error {
	if err := p.limit.WaitN(ctx, min(m.Size(), burst)); err != nil {
		return err
	}
	return p.BitSwapNetwork.SendMessage(ctx, to, m)
}
