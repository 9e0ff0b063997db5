package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/daemon"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// node is the client's node and, if there is one, the node on the server.
type node struct{ *daemon.Pair[*api] }

func newNode(p *daemon.Pair[*api]) *node {
	n := &node{p}
	p.Keep = func(ctx context.Context, ref system.Ref) error { return n.stream(ctx, n.Far(), ref, io.Discard) }
	return n
}

// seeding is a node whose reads can be made to cross the link.
type seeding struct{ *node }

// Seed implements system.Seeder.
func (s seeding) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return s.PutFar(ctx, name, size, r)
}

// Cool implements system.Cooler.
func (s seeding) Cool(ctx context.Context, ref system.Ref) error { return s.Evict(ctx, ref) }

// Delete implements system.Deleter. Codex also removes blocks of the object that other objects
// share.
func (n *node) Delete(ctx context.Context, ref system.Ref) error { return n.Erase(ctx, ref) }

// Get implements system.Getter.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.stream(ctx, n.Near(), ref, w)
}

func (n *node) stream(ctx context.Context, from *api, ref system.Ref, w io.Writer) error {
	const path = "/network/stream"
	resp, err := n.search(ctx, from, ref, path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := from.Web.Copy(resp, w)
	if err == nil && resp.ContentLength < 0 {
		err = fmt.Errorf("codex: GET %s of %s on %s: no Content-Length: are %d bytes all? %w", path, ref,
			from.At.Host, got, io.ErrUnexpectedEOF)
	}
	return err
}

// search requests a path below an object, for which the node may search the network without limit.
func (n *node) search(ctx context.Context, from *api, ref system.Ref, path string) (*http.Response, error) {
	return n.Search(ctx, "GET "+path, ref, func(ctx context.Context) (*http.Response, error) {
		return from.open(ctx, data(ref)+path)
	})
}

// Stat implements system.Stater. The node keeps the manifest after the first call, so that later
// ones do not cross the link.
func (n *node) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	resp, err := n.search(ctx, n.Near(), ref, "/network/manifest")
	if err != nil {
		return system.Object{}, err
	}
	defer resp.Body.Close()
	m := manifest{CID: string(ref)}
	if err := json.NewDecoder(web.Bounded(resp)).Decode(&m); err != nil {
		return system.Object{}, fmt.Errorf("codex: manifest of %s on %s: answer: %w", ref, n.Near().At.Host, err)
	}
	return m.object()
}

func (m manifest) object() (system.Object, error) {
	o := system.Object{Ref: system.Ref(m.CID), Name: m.CID, NoRange: true}
	if m.Manifest.Filename != nil {
		o.Name = disk.Name(*m.Manifest.Filename)
	}
	var err error
	o.Size, err = m.size()
	return o, err
}

// List implements system.Lister: it lists the objects whose manifests the nodes have, not
// necessarily with their data.
func (n *node) List(ctx context.Context, visit func(system.Object) error) error {
	seen := map[string]bool{}
	for _, a := range n.All() {
		all, err := a.list(ctx)
		if err != nil {
			return err
		}
		for _, m := range all {
			if seen[m.CID] {
				continue
			}
			seen[m.CID] = true
			o, err := m.object()
			if err == nil {
				err = visit(o)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}
