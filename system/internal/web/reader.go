package web

import (
	"context"
	"io"

	"github.com/plimsoll-project/plimsoll/system"
)

// Reader is the part of a node that reads objects over HTTP. Nodes embed it.
type Reader struct {
	Client *Client
	locate func(ref system.Ref) (system.HTTPTarget, error)
}

// NewReader returns a reader with the client New(name, dial, t). locate returns the location of an
// object.
func NewReader(
	name string, dial Dial, t system.HTTPTarget, locate func(ref system.Ref) (system.HTTPTarget, error),
) (Reader, error) {
	c, err := New(name, dial, t)
	return Reader{c, locate}, err
}

// Get implements system.Node.
func (r Reader) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	t, err := r.locate(ref)
	if err != nil {
		return err
	}
	return r.Client.Get(ctx, t, w)
}

// GetRange implements system.Ranger.
func (r Reader) GetRange(ctx context.Context, ref system.Ref, off, n int64, w io.Writer) error {
	t, err := r.locate(ref)
	if err != nil {
		return err
	}
	return r.Client.GetRange(ctx, t, off, n, w)
}

// Stat implements system.Stater with HTTP HEAD.
func (r Reader) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	o := system.Object{Name: string(ref), Ref: ref, Size: -1}
	t, err := r.locate(ref)
	if err == nil {
		_, o.Size, err = r.Client.Head(ctx, t)
	}
	return o, err
}

// Redial implements system.Redialer.
func (r Reader) Redial(context.Context) error {
	r.Client.Redial()
	return nil
}
