package renterd

import (
	"context"
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

// Settle implements system.Settler: it waits until every slab of the object has
// left the node's buffers and has all its shards on hosts. With packing that
// happens when others fill the buffer, which may be never. It asks every 5 ms,
// or 2 % of what it waited (sia.Poll), and so ends late by that and by one answer
// of the node.
func (n *node) Settle(ctx context.Context, ref system.Ref) error {
	seen := false
	err := sia.Poll(ctx, name, string(ref)+" is accepted and not durable", func(ctx context.Context) (bool, string, error) {
		o, err := n.object(ctx, ref)
		on := o.onHosts(n.total)
		seen = seen || err == nil
		return on >= o.Size, fmt.Sprintf("%d of %d bytes are on hosts", on, o.Size), err
	})
	if err != nil && seen && ctx.Err() != nil { // a node that hangs is not asked again
		return n.withBuffers(ctx, err)
	}
	return err
}

// withBuffers adds how full the buffers are in which objects wait.
func (n *node) withBuffers(ctx context.Context, err error) error {
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	var buffers []buffer
	if n.api.get(ask, n.api.url("bus/slabbuffers", "", nil), &buffers) != nil || len(buffers) == 0 {
		return err
	}
	var full []string
	for _, b := range buffers {
		full = append(full, fmt.Sprintf("%d of %d bytes", b.Size, b.MaxSize))
	}
	return fmt.Errorf("%w; the node's slab buffers hold %s: put more, or set option `packing` to off", err, strings.Join(full, ", "))
}
