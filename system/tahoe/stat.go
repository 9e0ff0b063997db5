package tahoe

import (
	"context"
	"fmt"
	"net/http"

	"github.com/plimsoll-project/plimsoll/system"
)

// checked is the answer to t=check: which shares the storage nodes report to have. For a literal
// cap it contains no numbers.
type checked struct {
	Healthy     bool `json:"healthy"`
	Recoverable bool `json:"recoverable"`
	Good        int  `json:"count-shares-good"`
	Needed      int  `json:"count-shares-needed"`
	Expected    int  `json:"count-shares-expected"`
}

// check asks every storage node for shares of ref.
func (n *node) check(ctx context.Context, ref system.Ref) (checked, error) {
	var answer struct {
		Results checked `json:"results"`
	}
	at := n.at("/uri/"+string(ref), "t=check&output=json").URL
	if err := n.client.JSON(ctx, http.MethodPost, at, nil, nil, &answer); err != nil {
		return checked{}, n.explain(ctx, "check", err)
	}
	return answer.Results, nil
}

// Stat implements system.Stater by asking every storage node for its shares. The size comes from
// the cap; that of mutable files is unknown.
func (n *node) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	c, err := parseCap(ref)
	if err != nil {
		return system.Object{}, err
	}
	o := system.Object{Ref: ref, Size: c.size}
	got, err := n.check(ctx, ref)
	switch {
	case err != nil:
		return o, err
	case c.literal() || got.Recoverable:
		return o, nil
	case got.Good == 0:
		return o, n.absent(ctx, fmt.Errorf("tahoe: stat %s: no storage node has a share of it", ref))
	}
	return o, fmt.Errorf("tahoe: stat %s: %d shares are there, %d are needed: %w", ref, got.Good, got.Needed,
		system.ErrTooFew)
}
