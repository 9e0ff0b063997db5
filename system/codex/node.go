package codex

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/pair"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// node is the client's node, and the one on the server when there is one.
type node struct{ *pair.Node[*api] }

// seeding is a node whose reads can be made to cross the link.
type seeding struct{ *node }

// Seed implements system.Seeder.
func (s seeding) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return pair.Seeding[*api]{Node: s.Node}.Seed(ctx, name, size, r)
}

// Cool implements system.Cooler.
func (s seeding) Cool(ctx context.Context, ref system.Ref) error { return s.Evict(ctx, ref) }

// newNode is a node with the limits of opt, not connected yet.
func newNode(opt system.Options) (*node, error) {
	base, err := pair.New[*api](name, opt)
	if err != nil {
		return nil, err
	}
	n := &node{base}
	n.Sums = true // for Twin
	n.Keep = func(ctx context.Context, ref system.Ref) error { return n.stream(ctx, n.Far(), ref, io.Discard) }
	return n, nil
}

// Get implements system.Node.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.stream(ctx, n.Near(), ref, w)
}

func (n *node) stream(ctx context.Context, from *api, ref system.Ref, w io.Writer) error {
	path := data(ref) + "/network/stream"
	resp, err := n.search(ctx, from, ref, path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	got, err := io.Copy(w, resp.Body)
	switch {
	case err != nil:
		return fmt.Errorf("codex: GET %s on %s: %d of %d bytes: %w", path, from.base.Host, got, resp.ContentLength, err)
	case resp.ContentLength < 0:
		return fmt.Errorf("codex: GET %s on %s: no Content-Length: who knows whether %d bytes are all: %w", path, from.base.Host, got, io.ErrUnexpectedEOF)
	}
	return nil
}

// search makes a request for which the node may search the network for ever.
func (n *node) search(ctx context.Context, from *api, ref system.Ref, path string) (*http.Response, error) {
	if err := valid(ref); err != nil {
		return nil, err
	}
	return n.Search(ctx, fmt.Sprintf("GET %s on %s", path, from.base.Host), ref, false, func(ctx context.Context) (*http.Response, error) {
		return from.open(ctx, path)
	})
}

// Stat implements system.Stater. The node keeps the manifest that it fetched:
// asked again it does not cross the link.
func (n *node) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	path := data(ref) + "/network/manifest"
	resp, err := n.search(ctx, n.Near(), ref, path)
	if err != nil {
		return system.Object{}, err
	}
	defer resp.Body.Close()
	m := manifest{CID: string(ref)}
	if err := json.NewDecoder(web.Bounded(resp.Body)).Decode(&m); err != nil {
		return system.Object{}, fmt.Errorf("codex: GET %s on %s: answer: %w", path, n.Near().base.Host, err)
	}
	return m.object()
}

func (m manifest) object() (system.Object, error) {
	o := system.Object{Ref: system.Ref(m.CID), Name: m.CID, NoRange: true}
	if m.Manifest.Filename != nil {
		o.Name = disk.Name(*m.Manifest.Filename)
	}
	var err error
	if o.Size, err = m.Manifest.DatasetSize.Int64(); err != nil {
		return o, fmt.Errorf("codex: manifest of %s: datasetSize %q: %w", m.CID, m.Manifest.DatasetSize, err)
	}
	return o, nil
}

// List implements system.Lister: what the nodes have manifests of, which does
// not mean that they have the data.
func (n *node) List(ctx context.Context) ([]system.Object, error) {
	seen := map[string]bool{}
	var out []system.Object
	for _, a := range n.All() {
		all, err := a.list(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			if seen[m.CID] {
				continue
			}
			seen[m.CID] = true
			o, err := m.object()
			if err != nil {
				return nil, err
			}
			out = append(out, o)
		}
	}
	return out, nil
}

// Delete implements system.Deleter. Codex removes an object's blocks also when another
// object has the same ones, so an object is not deleted while another of ours has the
// same content.
func (n *node) Delete(ctx context.Context, ref system.Ref) error {
	if err := valid(ref); err != nil {
		return err
	}
	if twin, ok := n.Twin(ref); ok {
		return fmt.Errorf("codex: delete %s: refused: %s has the same content, and would lose its data: the node does not count who uses a block", ref, twin)
	}
	return n.Erase(ctx, ref)
}
