package fanout

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// peer is a node and what it has.
type peer struct {
	dir string

	mu       sync.Mutex
	contents map[string]*content
}

// Serve implements system.Embedded: the node of `plimsoll node fanout`.
func (System) Serve(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("node fanout", flag.ContinueOnError)
	flags.SetOutput(stderr)
	control := flags.String("control", "", "`address` of the control API")
	listen := flags.String("listen", "", "`address` of the content's server")
	dir := flags.String("dir", "", "`directory` of contents and tasks")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *control == "" || *listen == "" || *dir == "" || flags.NArg() > 0 {
		return errors.New("fanout: give --control ADDRESS, --listen ADDRESS and --dir DIRECTORY, and nothing besides " +
			"flags")
	}
	p := &peer{dir: *dir, contents: map[string]*content{}}
	defer func() {
		for _, c := range p.contents {
			c.Stop()
		}
	}()
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return fmt.Errorf("fanout: %w", err)
	}
	return member.Serve(ctx, name, stdout,
		member.Server{What: "contents", Address: *listen, Handler: p.contentServer()},
		member.Server{What: "control", Address: *control, Handler: member.Handler(p)})
}

// content is a new one of this node.
func (p *peer) content(m manifest) *content {
	ref := m.ref()
	return &content{ref: ref, dir: filepath.Join(p.dir, ref), said: m, good: make([]bool, m.blocks())}
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

// Fetch implements member.Node: it begins a task, or adds seeders to one that is there.
func (p *peer) Fetch(ref string, raw json.RawMessage) error {
	var t member.Task[manifest]
	if err := json.Unmarshal(raw, &t); err != nil {
		return err
	}
	if is := t.Said.ref(); is != ref {
		return fmt.Errorf("the manifest is that of %s, not of %s", is, ref)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, there := p.contents[ref]; there {
		c.add(t.From)
		return nil
	}
	c := p.content(t.Said)
	c.ours = t.Published
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return err
	}
	c.add(t.From)
	p.contents[ref] = c
	c.Begin(c.download)
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
	c := p.content(m)
	c.ours = true
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, there := p.contents[c.ref]; there {
		old.Stop()
		delete(p.contents, c.ref)
	}
	if err := errors.Join(os.MkdirAll(c.dir, 0o755), os.Rename(file, c.path())); err != nil {
		return nil, err
	}
	for i := range c.good {
		c.have(i)
	}
	p.contents[c.ref] = c
	return m, nil
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
	return member.ServeFile(w, r, c.path())
}

// Forget implements member.Node: it drops a content and its files.
func (p *peer) Forget(ref string) error {
	c, err := p.of(ref)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c.Stop()
	delete(p.contents, ref)
	return os.RemoveAll(c.dir)
}
