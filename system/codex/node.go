package codex

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/patience"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// node is the client's node, and the one on the server when there is one.
type node struct {
	near     *api
	far      *api // nil: there is none that we know of
	procs    []*testbed.Process
	alive    context.Context // ends with the processes; nil when attached
	unwatch  context.CancelFunc
	dirs     []string // what started nodes keep
	attached bool
	write    bool

	notFoundAfter, stallAfter time.Duration

	mu   sync.Mutex
	ours map[system.Ref]object
}

// object is one that was stored through us.
type object struct {
	size int64
	sum  [sha256.Size]byte
	near bool // put on the client's node
	far  bool // whole on the server's
}

// pair is a node whose reads can be made to cross the link: another node, on
// the server, holds what it asks for.
type pair struct{ *node }

func (n *node) nodes() []*api {
	var all []*api
	for _, a := range []*api{n.near, n.far} {
		if a != nil {
			all = append(all, a)
		}
	}
	return all
}

// Put implements system.Node: an import into the client's node. Nothing crosses
// the link.
func (n *node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.store(ctx, n.near, name, size, r)
}

// Seed implements system.Seeder: an import into the server's node, by its host.
func (p pair) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return p.store(ctx, p.far, name, size, r)
}

func (n *node) store(ctx context.Context, on *api, name string, size int64, r io.Reader) (system.Ref, error) {
	if n.attached && !n.write {
		return "", fmt.Errorf("codex: put %q: %w; `allow: [write]` in the experiment file permits it", name, system.ErrReadOnly)
	}
	h := sha256.New()
	ref, err := on.store(ctx, disk.PortableName(name), size, io.TeeReader(r, h))
	if err != nil {
		return "", patience.Explain(n.alive, fmt.Errorf("codex: put %q (%d bytes): %w", name, size, err))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.ours[ref]
	o.size, o.near, o.far = size, o.near || on == n.near, o.far || on == n.far
	h.Sum(o.sum[:0])
	n.ours[ref] = o
	return ref, nil
}

// Get implements system.Node.
func (n *node) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	return n.stream(ctx, n.near, ref, w)
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
	w := patience.Wait{What: fmt.Sprintf("codex: GET %s on %s", path, from.base.Host), Head: n.notFoundAfter, Body: n.stallAfter, Alive: n.alive}
	if !n.attached {
		w.Known = func(ctx context.Context) (bool, error) { return n.anywhere(ctx, ref) }
	}
	resp, err := w.Do(ctx, func(ctx context.Context) (*http.Response, error) {
		return from.open(ctx, path)
	})
	return resp, patience.Explain(n.alive, err)
}

// anywhere tells whether one of our nodes has the object's manifest: without
// it nobody could find the rest.
func (n *node) anywhere(ctx context.Context, ref system.Ref) (bool, error) {
	for _, a := range n.nodes() {
		if has, err := a.manifestHere(ctx, ref); has || err != nil {
			return has, err
		}
	}
	return false, nil
}

// Stat implements system.Stater. The node keeps the manifest that it fetched:
// asked again it does not cross the link.
func (n *node) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	path := data(ref) + "/network/manifest"
	resp, err := n.search(ctx, n.near, ref, path)
	if err != nil {
		return system.Object{}, err
	}
	defer resp.Body.Close()
	m := manifest{CID: string(ref)}
	if err := json.NewDecoder(web.Bounded(resp.Body)).Decode(&m); err != nil {
		return system.Object{}, fmt.Errorf("codex: GET %s on %s: answer: %w", path, n.near.base.Host, err)
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
	for _, a := range n.nodes() {
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

// Delete implements system.Deleter, for what was stored through us. Codex
// removes an object's blocks also when another object has the same ones, so an
// object is not deleted while another of ours has the same content.
func (n *node) Delete(ctx context.Context, ref system.Ref) error {
	o, err := n.mine(ref)
	if err != nil {
		return fmt.Errorf("codex: delete: %w", err)
	}
	if twin, ok := n.twin(ref, o); ok {
		return fmt.Errorf("codex: delete %s: refused: %s has the same content, and would lose its data: the node does not count who uses a block", ref, twin)
	}
	if err := n.near.remove(ctx, ref); err != nil {
		return err
	}
	if o.far {
		if err := n.far.remove(ctx, ref); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ours, ref)
	return nil
}

// remove deletes an object and its blocks on one node, which does not say
// whether there was such an object.
func (a *api) remove(ctx context.Context, ref system.Ref) error {
	_, err := a.text(ctx, data(ref), nil, web.Call{Method: http.MethodDelete})
	return err
}

func (n *node) mine(ref system.Ref) (object, error) {
	if err := valid(ref); err != nil {
		return object{}, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	o, ok := n.ours[ref]
	if !ok {
		return o, fmt.Errorf("codex: %s is not ours: %w", ref, system.ErrReadOnly)
	}
	return o, nil
}

// twin is another object of ours with the same content.
func (n *node) twin(ref system.Ref, o object) (system.Ref, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other, x := range n.ours {
		if other != ref && x.size == o.size && x.sum == o.sum {
			return other, true
		}
	}
	return "", false
}

// Cool implements system.Cooler: the server's node gets all of the object, then
// the client's node deletes it.
func (p pair) Cool(ctx context.Context, ref system.Ref) error {
	o, err := p.mine(ref)
	if err != nil {
		return err
	}
	if !o.far {
		// Else we would delete the only copy.
		if err := p.stream(ctx, p.far, ref, io.Discard); err != nil {
			return fmt.Errorf("codex: cool %s: copy it to the server's node: %w", ref, err)
		}
		p.mu.Lock()
		o.far = true
		p.ours[ref] = o
		p.mu.Unlock()
	}
	if err := p.near.remove(ctx, ref); err != nil {
		return fmt.Errorf("codex: cool: %w", err)
	}
	// Asked for what is local, the node answers at once; it would begin to send
	// as soon as it had the manifest.
	resp, err := p.near.open(ctx, data(ref))
	if err == nil {
		resp.Body.Close()
		return fmt.Errorf("codex: cool %s: the client's node still serves it after the delete: %w", ref, system.ErrWarm)
	}
	if !errors.Is(err, system.ErrNotFound) {
		return fmt.Errorf("codex: cool %s: cannot tell whether it is cold: %w", ref, err)
	}
	return nil
}

// Stats implements system.Stats: both nodes, since what is put is kept by the
// client's own.
func (n *node) Stats(ctx context.Context) (system.Holdings, error) {
	sum := system.Holdings{Objects: -1, Disk: -1, Entries: -1, Inodes: -1}
	if len(n.dirs) > 0 {
		var err error
		if sum, err = disk.Usage(n.dirs...); err != nil {
			return sum, fmt.Errorf("codex: %w", err)
		}
	}
	sum.Absolute = 0
	for _, a := range n.nodes() {
		s, err := a.space(ctx)
		if err != nil {
			return system.Holdings{}, err
		}
		sum.Absolute += s.QuotaUsedBytes
	}
	return sum, nil
}

// Address implements system.Connector.
func (n *node) Address(ctx context.Context) (string, error) { return n.near.address(ctx) }

func (a *api) address(ctx context.Context) (string, error) {
	i, err := a.info(ctx)
	if err != nil {
		return "", err
	}
	if i.ID == "" || len(i.Addrs) == 0 {
		return "", fmt.Errorf("codex: GET /debug/info on %s: tells no id or no address", a.base.Host)
	}
	return i.Addrs[0] + "/p2p/" + i.ID, nil
}

// Connect implements system.Connector. The node says yes to any address when it
// is connected to the peer already.
func (n *node) Connect(ctx context.Context, address string) error {
	return n.near.connect(ctx, address)
}

const healthTimeout = 10 * time.Second

// Health implements system.Healther.
func (n *node) Health(ctx context.Context) error {
	if n.alive != nil && n.alive.Err() != nil {
		return fmt.Errorf("codex: %w", context.Cause(n.alive))
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	for _, a := range n.nodes() {
		if _, err := a.space(ctx); err != nil {
			return fmt.Errorf("health probe failed: %w", err)
		}
	}
	return nil
}

// Processes implements system.Node.
func (n *node) Processes() []*testbed.Process { return n.procs }

// Endpoints implements system.Endpointer.
func (n *node) Endpoints() []string {
	var all []string
	for _, a := range n.nodes() {
		all = append(all, web.HostPort(a.base))
	}
	return all
}

// Stop implements group.Node.
func (n *node) Stop(ctx context.Context) error {
	if n.unwatch != nil {
		n.unwatch()
	}
	var errs []error
	for _, p := range n.procs {
		errs = append(errs, p.Stop(ctx))
	}
	for _, a := range n.nodes() {
		a.web.Close()
	}
	return errors.Join(errs...)
}
