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
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// task is what a node is given to fetch.
type task struct {
	Manifest  manifest
	From      []string // addresses of seeders
	Published bool     // it is a seeder itself
}

// peer is a node and what it has.
type peer struct {
	dir   string
	kept  member.Tasks
	self  string // address of its content's server
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

// Fetch implements member.Node.
func (p *peer) Fetch(ref string, raw json.RawMessage) error {
	var t task
	if err := json.Unmarshal(raw, &t); err != nil {
		return err
	}
	if is := t.Manifest.ref(); is != ref {
		return fmt.Errorf("the manifest is that of %s, not of %s", is, ref)
	}
	return p.take(ref, t)
}

// Progress implements member.Node.
func (p *peer) Progress(ref string) (f system.Progress, err error) {
	c, err := p.of(ref)
	if err != nil {
		return f, err
	}
	return c.progress(), nil
}

// ReadBack implements member.Node: the file as it is.
func (p *peer) ReadBack(w http.ResponseWriter, r *http.Request, ref string) error {
	c, err := p.of(ref)
	if err != nil {
		return err
	}
	return serveFile(w, r, c.path())
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
func (p *peer) take(ref string, t task) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, there := p.contents[ref]
	if !there {
		c = newContent(filepath.Join(p.dir, ref), t)
		if err := os.MkdirAll(c.dir, 0o755); err != nil {
			return err
		}
	}
	c.task.From = member.Merge(c.task.From, t.From)
	if err := p.kept.Save(ref, c.task); err != nil {
		return err
	}
	p.introduce(c, c.task.From)
	if !there {
		p.introduce(c, p.known)
		p.contents[ref] = c
		c.begin()
	}
	return nil
}

// introduce names seeders to a content, but not the node itself.
func (p *peer) introduce(c *content, from []string) {
	c.add(slices.DeleteFunc(slices.Clone(from), func(a string) bool { return a == p.self }))
}

// Connect implements member.Node: a seeder for every content.
func (p *peer) Connect(address string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known = member.Merge(p.known, []string{address})
	for _, c := range p.contents {
		p.introduce(c, p.known)
	}
	return nil
}

// Publish implements member.Node: it writes the content to this node's disk,
// hashing it on the way, and serves it.
func (p *peer) Publish(ctx context.Context, _ string, size int64, r io.Reader) (any, error) {
	var m manifest
	file, err := member.Receive(ctx, testbed.LocalFiles{}, p.dir, size, block, r, m.add)
	if err != nil {
		return nil, err
	}
	defer os.Remove(file) // fails when renamed, as it should
	return m, p.seed(m, file)
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
	c := newContent(filepath.Join(p.dir, ref), task{Manifest: m, Published: true})
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	if err := os.Rename(file, c.path()); err != nil {
		return err
	}
	if err := p.kept.Save(ref, c.task); err != nil {
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
	delete(p.contents, ref)
	return errors.Join(p.kept.Remove(ref), os.RemoveAll(c.dir))
}
