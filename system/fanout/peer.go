package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/time/rate"

	"github.com/plimsoll-project/plimsoll/system"
)

// Files of a content, in a directory of its own named by the ref.
const (
	contentFile = "content"
	taskFile    = "task.json"
)

// task is what a node is told to fetch, and what it keeps on disk to go on with.
type task struct {
	Manifest  manifest
	From      []string // addresses of seeders
	Published bool     // it is a seeder itself
}

// peer is a node: what it was told and what it has.
type peer struct {
	dir   string
	self  string // address of its content's server
	all   bool   // download from all seeders at the same time
	limit *rate.Limiter

	mu       sync.Mutex
	contents map[string]*content
	known    []string // seeders for every content
}

func (p *peer) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.contents {
		c.stop()
	}
}

// resume takes up what an earlier process left.
func (p *peer) resume() error {
	paths, err := filepath.Glob(filepath.Join(p.dir, "*", taskFile))
	if err != nil {
		return err
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var t task
		if err := json.Unmarshal(b, &t); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := p.take(t); err != nil {
			return err
		}
	}
	return nil
}

// Fetch implements member.Node.
func (p *peer) Fetch(ref string, raw json.RawMessage) error {
	var t task
	if err := json.Unmarshal(raw, &t); err != nil {
		return err
	}
	if is := t.Manifest.ref(); is != ref {
		return fmt.Errorf("the manifest is that of %s, not of %s", is, ref)
	}
	return p.take(t)
}

// Progress implements member.Node.
func (p *peer) Progress(ref string) (f system.Progress, err error) {
	c, err := p.of(ref)
	if err != nil {
		return f, err
	}
	return c.fetched(), nil
}

// ReadBack implements member.Node: the file as it is.
func (p *peer) ReadBack(w http.ResponseWriter, r *http.Request, ref string) error {
	c, err := p.of(ref)
	if err != nil {
		return err
	}
	return serveFile(w, r, c.path(contentFile))
}

// of is a content that this node has or fetches.
func (p *peer) of(ref string) (*content, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, there := p.contents[ref]
	if !there {
		return nil, fmt.Errorf("%s: %w", ref, system.ErrNotFound)
	}
	return c, nil
}

// take begins a task, or adds seeders to one that is there.
func (p *peer) take(t task) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ref := t.Manifest.ref()
	if c, there := p.contents[ref]; there {
		for _, a := range t.From {
			if !slices.Contains(c.task.From, a) {
				c.task.From = append(c.task.From, a)
			}
		}
		if err := c.save(); err != nil {
			return err
		}
		c.more(t.From)
		return nil
	}
	dir := filepath.Join(p.dir, ref)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	c := newContent(dir, t, p.self, p.all)
	if err := c.save(); err != nil {
		return err
	}
	p.contents[ref] = c
	c.begin(slices.Concat(t.From, p.known))
	return nil
}

// Connect implements member.Node: a seeder for every content.
func (p *peer) Connect(address string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Contains(p.known, address) {
		return nil
	}
	p.known = append(p.known, address)
	for _, c := range p.contents {
		c.more([]string{address})
	}
	return nil
}

// Publish implements member.Node: it writes the content to this node's disk,
// hashing it on the way, and serves it.
func (p *peer) Publish(ctx context.Context, _ string, size int64, r io.Reader) (any, error) {
	var m manifest
	f, err := os.CreateTemp(p.dir, ".publish-*")
	if err != nil {
		return m, err
	}
	defer os.Remove(f.Name()) // fails when renamed, as it should
	defer f.Close()
	buf := make([]byte, block)
	for m.Size < size {
		if err := ctx.Err(); err != nil {
			return m, err
		}
		b := buf[:min(block, size-m.Size)]
		if _, err := io.ReadFull(r, b); err != nil {
			return m, fmt.Errorf("after %d of %d bytes: %w", m.Size, size, err)
		}
		if _, err := f.Write(b); err != nil {
			return m, err
		}
		m.add(b)
	}
	// A client that breaks off late would have published all the same.
	if n, err := r.Read(buf[:1]); n > 0 || err != nil && err != io.EOF {
		return m, fmt.Errorf("after %d bytes: %d more: %w", size, n, err)
	}
	if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
		return m, err
	}
	return m, p.seed(m, f.Name())
}

// seed puts a file in its place.
func (p *peer) seed(m manifest, file string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	ref := m.ref()
	if c, there := p.contents[ref]; there {
		c.stop()
		delete(p.contents, ref)
	}
	c := newContent(filepath.Join(p.dir, ref), task{Manifest: m, Published: true}, p.self, p.all)
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	if err := os.Rename(file, c.path(contentFile)); err != nil {
		return err
	}
	if err := c.save(); err != nil {
		return err
	}
	c.hasAll()
	p.contents[ref] = c
	return nil
}

// Forget implements member.Node: it drops a content and its files.
func (p *peer) Forget(ref string) error {
	c, err := p.of(ref)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.stop()
	delete(p.contents, c.ref)
	return os.RemoveAll(c.dir)
}
