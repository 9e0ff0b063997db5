package mem

import (
	"context"
	"io"

	"github.com/plimsoll-project/plimsoll/system"
)

// Hooked is a node of which a test changes what its calls do. Before comes before a call, of a name
// or a ref, and After when it has ended well; their errors are the call's. A nil one changes nothing.
type Hooked struct {
	*Node
	Before, After func(ctx context.Context, call, of string) error
}

func (n *Hooked) around(ctx context.Context, call, of string, do func() error) error {
	if n.Before != nil {
		if err := n.Before(ctx, call, of); err != nil {
			return err
		}
	}
	err := do()
	if err == nil && n.After != nil {
		err = n.After(ctx, call, of)
	}
	return err
}

// Put implements system.Store.
func (n *Hooked) Put(ctx context.Context, name string, size int64, r io.Reader) (ref system.Ref, err error) {
	err = n.around(ctx, "put", name, func() error { ref, err = n.Node.Put(ctx, name, size, r); return err })
	if err != nil {
		ref = ""
	}
	return ref, err
}

// Seed implements system.Seeder.
func (n *Hooked) Seed(ctx context.Context, name string, size int64, r io.Reader) (ref system.Ref, err error) {
	return ref, n.around(ctx, "seed", name, func() error { ref, err = n.Node.Seed(ctx, name, size, r); return err })
}

// Get implements system.Store.
func (n *Hooked) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.around(ctx, "get", string(ref), func() error { return n.Node.Get(ctx, ref, w) })
}

// Stat implements system.Stater.
func (n *Hooked) Stat(ctx context.Context, ref system.Ref) (o system.Object, err error) {
	return o, n.around(ctx, "stat", string(ref), func() error { o, err = n.Node.Stat(ctx, ref); return err })
}

// Delete implements system.Deleter.
func (n *Hooked) Delete(ctx context.Context, ref system.Ref) error {
	return n.around(ctx, "delete", string(ref), func() error { return n.Node.Delete(ctx, ref) })
}

// Settle implements system.Settler.
func (n *Hooked) Settle(ctx context.Context, ref system.Ref) error {
	return n.around(ctx, "settle", string(ref), func() error { return n.Node.Settle(ctx, ref) })
}

// Cool implements system.Cooler.
func (n *Hooked) Cool(ctx context.Context, ref system.Ref) error {
	return n.around(ctx, "cool", string(ref), func() error { return n.Node.Cool(ctx, ref) })
}

// Stats implements system.Stats.
func (n *Hooked) Stats(ctx context.Context) (h system.Holdings, err error) {
	return h, n.around(ctx, "stats", "", func() error { h, err = n.Node.Stats(ctx); return err })
}

// Costs implements system.Coster.
func (n *Hooked) Costs(ctx context.Context) (c system.Costs, err error) {
	return c, n.around(ctx, "costs", "", func() error { c, err = n.Node.Costs(ctx); return err })
}
