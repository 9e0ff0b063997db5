package kubo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/plimsoll-project/plimsoll/system"
)

// Get implements system.Node, in the way that option method names.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	if err := n.ready(ctx, ref); err != nil {
		return err
	}
	if n.method == "pin" {
		if err := n.pin(ctx, ref); err != nil {
			return err
		}
	}
	_, err := n.cat(ctx, url.Values{"arg": {string(ref)}}, ref, w)
	return err
}

// GetRange implements system.Ranger: cat with offset and length, whatever the
// method. A cold node fetches far more than the range: it reads ahead.
func (n *node) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	if off < 0 || count < 0 {
		return fmt.Errorf("kubo: range of %d bytes at %d", count, off)
	}
	if err := n.ready(ctx, ref); err != nil {
		return err
	}
	if count == 0 {
		return nil
	}
	args := url.Values{"arg": {string(ref)}, "offset": {strconv.FormatInt(off, 10)}, "length": {strconv.FormatInt(count, 10)}}
	got, err := n.cat(ctx, args, ref, w)
	if err == nil && got < count { // a range behind the end is an empty 200
		err = fmt.Errorf("kubo: bytes %d-%d of %s: the object ends %d bytes early: %w", off, off+count-1, ref, count-got, io.ErrUnexpectedEOF)
	}
	return err
}

// ready checks the ref and connects to the server's node again after Redial.
func (n *node) ready(ctx context.Context, ref system.Ref) error {
	if err := valid(ref); err != nil {
		return err
	}
	return n.reconnect(ctx)
}

func (n *node) cat(ctx context.Context, args url.Values, ref system.Ref, w io.Writer) (int64, error) {
	resp, err := n.Search(ctx, "cat of "+string(ref), ref, false, func(ctx context.Context) (*http.Response, error) {
		return n.Near().call(ctx, "cat", args)
	})
	if err != nil {
		return 0, err
	}
	got, err := n.Near().copy("cat", ref, resp, w)
	if err != nil {
		return got, err
	}
	if said, err := strconv.ParseInt(resp.Header.Get("X-Content-Length"), 10, 64); err != nil || said != got {
		return got, fmt.Errorf("kubo: cat of %s: %d bytes, X-Content-Length says %q: %w", ref, got, resp.Header.Get("X-Content-Length"), io.ErrUnexpectedEOF)
	}
	return got, nil
}

// pin makes the node fetch an object whole, and keep it. Cool undoes it.
func (n *node) pin(ctx context.Context, ref system.Ref) error {
	resp, err := n.Search(ctx, "pin/add of "+string(ref), ref, true, func(ctx context.Context) (*http.Response, error) {
		return n.Near().call(ctx, "pin/add", url.Values{"arg": {string(ref)}})
	})
	if err != nil {
		return err
	}
	_, err = n.Near().copy("pin/add", ref, resp, io.Discard)
	return err
}
