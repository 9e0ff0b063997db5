package kubo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/pair"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// node is the client's node, and the one on the server when there is one.
type node struct {
	*pair.Node[*rpc]
	gateway *url.URL // of the node that is prepared; nil when attached without
	method  string
	farAddr string // of the server's node in the swarm; empty: there is none

	mu     sync.Mutex
	parted bool // Redial has ended the connection between the nodes
}

// seeding is a node whose reads can be made to cross the link.
type seeding struct{ *node }

// Seed implements system.Seeder.
func (s seeding) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return pair.Seeding[*rpc]{Node: s.Node}.Seed(ctx, name, size, r)
}

// private is one whose nodes may be made to forget.
type private struct{ seeding }

// Cool implements system.Cooler.
func (p private) Cool(ctx context.Context, ref system.Ref) error {
	if err := p.reconnect(ctx); err != nil {
		return err
	}
	return p.Evict(ctx, ref)
}

// Delete implements system.Deleter. Blocks that another pin shares stay.
func (p private) Delete(ctx context.Context, ref system.Ref) error { return p.Erase(ctx, ref) }

// Stat implements system.Stater.
func (n *node) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	o := system.Object{Ref: ref, Name: string(ref)}
	if err := n.ready(ctx, ref); err != nil {
		return o, err
	}
	args := url.Values{"arg": {"/ipfs/" + string(ref)}}
	if n.NotFoundAfter > 0 {
		args.Set("timeout", n.NotFoundAfter.String()) // or the daemon searches on when we have given up
	}
	resp, err := n.Search(ctx, "stat of "+string(ref), ref, false, func(ctx context.Context) (*http.Response, error) {
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

// Target implements system.HTTPServer: the gateway of the node on the server.
func (n *node) Target(ref system.Ref) (system.HTTPTarget, error) {
	if err := valid(ref); err != nil {
		return system.HTTPTarget{}, err
	}
	if n.gateway == nil {
		return system.HTTPTarget{}, errors.New("kubo: objects are fetched over HTTP from a gateway: name it in option \"gateway\"")
	}
	return system.HTTPTarget{URL: n.gateway.JoinPath("ipfs", string(ref)), Header: http.Header{}}, nil
}

// emptyDirectory is pinned in every repo from the start.
const emptyDirectory = "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"

// List implements system.Lister: what is pinned. The node gives no sizes and
// seldom names, so only what was stored through us has them.
func (n *node) List(ctx context.Context) ([]system.Object, error) {
	seen := map[string]bool{emptyDirectory: true}
	var out []system.Object
	for _, r := range n.All() {
		resp, err := r.call(ctx, "pin/ls", url.Values{"type": {"recursive"}, "stream": {"true"}, "names": {"true"}})
		if err != nil {
			return nil, err
		}
		err = r.decode("pin/ls", resp, func(d *json.Decoder) error {
			var pin struct{ Cid, Name string }
			if err := d.Decode(&pin); err != nil {
				return err
			}
			if seen[pin.Cid] {
				return nil
			}
			seen[pin.Cid] = true
			o := system.Object{Ref: system.Ref(pin.Cid), Name: cmp.Or(pin.Name, pin.Cid), Size: -1}
			if own, err := n.Ours(o.Ref); err == nil {
				o.Name, o.Size = own.Name, own.Size
			}
			out = append(out, o)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Redial implements system.Redialer: the nodes part, and the next read begins
// with their handshake. Requests to the client's node are made anew, too.
func (n *node) Redial(ctx context.Context) error {
	for _, r := range n.All() {
		r.web.Redial()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.farAddr == "" || n.parted {
		return nil
	}
	if err := n.Near().swarm(ctx, "disconnect", n.farAddr); err != nil {
		return err
	}
	n.parted = true
	return nil
}

// reconnect joins the nodes that Redial has parted.
func (n *node) reconnect(ctx context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.parted {
		return nil
	}
	if err := n.Near().swarm(ctx, "connect", n.farAddr); err != nil {
		return err
	}
	n.parted = false
	return nil
}

// Endpoints implements system.Endpointer.
func (n *node) Endpoints() []string {
	all := n.Node.Endpoints()
	if n.gateway != nil {
		all = append(all, web.HostPort(n.gateway))
	}
	return all
}
