package kubo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/daemon"
)

// node is the client's node and, if there is one, the node on the server.
type node struct{ *daemon.Pair[*rpc] }

func newNode(p *daemon.Pair[*rpc]) *node {
	p.Keep = func(ctx context.Context, ref system.Ref) error { return p.Far().quiet(ctx, "pin/add", arg(ref)) }
	return &node{p}
}

// seeding is a node whose reads can be made to cross the link.
type seeding struct{ *node }

// Seed implements system.Seeder.
func (s seeding) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return s.PutFar(ctx, name, size, r)
}

// private is a node of a network that Plimsoll started: repo/gc removes no foreign data there.
type private struct{ seeding }

// Cool implements system.Cooler.
func (p private) Cool(ctx context.Context, ref system.Ref) error { return p.Evict(ctx, ref) }

// Delete implements system.Deleter. Blocks shared with another pin stay.
func (p private) Delete(ctx context.Context, ref system.Ref) error { return p.Erase(ctx, ref) }

// Target implements system.HTTPServer with the gateway of the node on the server.
func (p private) Target(ref system.Ref) (system.HTTPTarget, error) {
	return system.HTTPTarget{URL: p.Daemons[0].URL(gatewayPort).JoinPath("ipfs", string(ref)), Header: http.Header{}},
		valid(ref)
}

// Get implements system.Getter.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	_, err := n.cat(ctx, arg(ref), ref, w)
	return err
}

// GetRange implements system.Ranger. A cold node fetches far more than the range, because it reads
// ahead.
func (n *node) GetRange(ctx context.Context, ref system.Ref, off, count int64, w io.Writer) error {
	if count == 0 {
		return valid(ref)
	}
	args := url.Values{"arg": {string(ref)}, "offset": {strconv.FormatInt(off, 10)},
		"length": {strconv.FormatInt(count, 10)}}
	got, err := n.cat(ctx, args, ref, w)
	if err == nil && got < count { // a range beyond the end returns an empty 200
		err = fmt.Errorf("kubo: bytes %d-%d of %s: the object ends %d bytes early: %w", off, off+count-1, ref,
			count-got, io.ErrUnexpectedEOF)
	}
	return err
}

func (n *node) cat(ctx context.Context, args url.Values, ref system.Ref, w io.Writer) (int64, error) {
	resp, err := n.Search(ctx, "cat", ref, func(ctx context.Context) (*http.Response, error) {
		return n.Near().call(ctx, "cat", args)
	})
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	got, err := n.Near().Web.Copy(resp, w)
	if err != nil {
		return got, err
	}
	if said, err := strconv.ParseInt(resp.Header.Get("X-Content-Length"), 10, 64); err != nil || said != got {
		return got, fmt.Errorf("kubo: cat of %s: %d bytes, X-Content-Length says %q: %w", ref, got,
			resp.Header.Get("X-Content-Length"), io.ErrUnexpectedEOF)
	}
	return got, nil
}

// Stat implements system.Stater.
func (n *node) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	o := system.Object{Ref: ref, Name: string(ref)}
	args := url.Values{"arg": {"/ipfs/" + string(ref)}}
	if n.NotFoundAfter > 0 {
		args.Set("timeout", n.NotFoundAfter.String()) // otherwise the daemon searches on after the caller gives up
	}
	resp, err := n.Search(ctx, "stat", ref, func(ctx context.Context) (*http.Response, error) {
		return n.Near().call(ctx, "files/stat", args)
	})
	if err != nil {
		return o, err
	}
	var s struct{ Size int64 }
	if err := n.Near().decode("files/stat", resp, func(d *json.Decoder) error { return d.Decode(&s) }); err != nil {
		return o, err
	}
	o.Size = s.Size
	if own, err := n.Ours(ref); err == nil {
		o.Name = own.Name
	}
	return o, nil
}

// emptyDirectory is pinned in every repo from the start.
const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"

// List implements system.Lister: it lists the pinned objects. The node reports no sizes and seldom
// names, so only objects stored through this node have them.
func (n *node) List(ctx context.Context, visit func(system.Object) error) error {
	seen := map[string]bool{emptyDirectory: true}
	for _, r := range n.All() {
		resp, err := r.call(ctx, "pin/ls", url.Values{"type": {"recursive"}, "stream": {"true"}, "names": {"true"}})
		if err != nil {
			return err
		}
		err = r.decode("pin/ls", resp, func(d *json.Decoder) error {
			var pin struct{ Cid, Name string }
			if err := d.Decode(&pin); err != nil || seen[pin.Cid] {
				return err
			}
			seen[pin.Cid] = true
			o := system.Object{Ref: system.Ref(pin.Cid), Name: cmp.Or(pin.Name, pin.Cid), Size: -1}
			if own, err := n.Ours(o.Ref); err == nil {
				o.Name, o.Size = own.Name, own.Size
			}
			return visit(o)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
