package fanout

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// node stores and fetches contents.
type node struct {
	member.Contents
	backend *backend
}

// backend manages the node's files.
type backend struct {
	dir            string
	received, sent atomic.Int64
	peers          atomic.Int32

	mu   sync.Mutex
	said map[system.Ref]manifest
	ours map[system.Ref]bool // published here
}

func newNode(dir string) *node {
	b := &backend{dir: dir, said: map[system.Ref]manifest{}, ours: map[system.Ref]bool{}}
	return &node{backend: b, Contents: member.Contents{Backend: b, Name: name, Title: dir, Redial: time.Hour,
		Ref: checkRef, Runs: func() error { return nil }}}
}

// Serve implements system.Embedded: the node of `plimsoll node fanout`.
func (System) Serve(ctx context.Context, args []string, stdout, _ io.Writer) error {
	var c member.Config
	if err := member.Configure(args, &c); err != nil {
		return err
	}
	n := newNode(c.Dir)
	defer n.Pause()
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("fanout: %w", err)
	}
	return member.Serve(ctx, name, stdout,
		member.Server{What: "contents", Address: c.Listen, Handler: n.contentServer()},
		member.Server{What: "control", Address: c.Control, Handler: member.Handler(n)})
}

func (b *backend) path(ref system.Ref) string { return filepath.Join(b.dir, string(ref), "content") }

// about returns the manifest of a content.
func (b *backend) about(ref system.Ref) manifest {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.said[ref]
}

// know records the manifest of a content.
func (b *backend) know(m manifest, ours bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said[m.ref()], b.ours[m.ref()] = m, ours || b.ours[m.ref()]
	return os.MkdirAll(filepath.Dir(b.path(m.ref())), 0o755)
}

// Fetch implements member.Node.
func (n *node) Fetch(ctx context.Context, ref system.Ref, t member.Task) error {
	if is := manifest(t.Said).ref(); is != ref {
		return fmt.Errorf("the manifest is that of %s, not of %s", is, ref)
	}
	if err := n.backend.know(t.Said, t.Published); err != nil {
		return err
	}
	return n.Contents.Fetch(ctx, ref, t.From)
}

// Publish implements member.Node.
func (n *node) Publish(ctx context.Context, title string, size int64, r io.Reader) (system.Ref, []byte, error) {
	ref, err := n.Contents.Publish(ctx, title, size, r)
	return ref, n.backend.about(ref), err
}

// Store implements member.Backend: it writes the content to this node's disk, hashes it meanwhile,
// and serves it.
func (b *backend) Store(ctx context.Context, _ string, size int64, r io.Reader) (system.Ref, error) {
	m := newManifest(size)
	file, err := member.Receive(ctx, testbed.LocalFiles{}, b.dir, size, block, r, m.add)
	if err != nil {
		return "", err
	}
	defer os.Remove(file) // fails after the rename, which is fine
	if err := b.know(m, true); err != nil {
		return "", err
	}
	return m.ref(), os.Rename(file, b.path(m.ref()))
}

// Count implements member.Backend.
func (b *backend) Count(context.Context) (member.Counts, error) {
	return member.Counts{Received: b.received.Load(), Sent: b.sent.Load(), Held: -1, Peers: int(b.peers.Load())}, nil
}

// Apart implements member.Backend: each download makes its own connection.
func (b *backend) Apart(context.Context, []string) ([]string, error) { return nil, nil }

// Connect implements member.Backend.
func (b *backend) Connect(context.Context, string) error { return nil }

// Part implements member.Backend.
func (b *backend) Part(context.Context) error { return nil }

// ReadBack implements member.Node with the file on disk.
func (n *node) ReadBack(w http.ResponseWriter, r *http.Request, ref system.Ref) error {
	if _, err := n.Progress(r.Context(), ref); err != nil {
		return err
	}
	return member.ServeFile(w, r, n.backend.path(ref))
}

// Remove implements member.Backend.
func (b *backend) Remove(_ context.Context, ref system.Ref) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.said, ref)
	delete(b.ours, ref)
	return os.RemoveAll(filepath.Dir(b.path(ref)))
}
