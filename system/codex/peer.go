package codex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/patience"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var (
	_ system.Member    = (*peer)(nil)
	_ system.Restarter = (*peer)(nil)
	_ system.Healther  = (*peer)(nil)
)

// keyFile is a node's identity within its data directory.
const keyFile = "key"

// peer is a node of a swarm. It tells how many blocks it holds and not of what,
// so that it is given one content at a time to fetch.
type peer struct {
	host       testbed.Host
	label, dir string
	command    []string
	base       *url.URL
	address    string
	connects   bool          // to the nodes that a fetch names; else the DHT finds them
	quiet      time.Duration // without a block, after which the node has given up
	stallAfter time.Duration // without a byte of a read

	mu       sync.Mutex
	proc     *testbed.Process // nil: a recording, in tests
	api      *api
	contents map[system.Ref]*content
}

// alive says whether the process has not ended.
func (p *peer) alive() (*api, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc == nil {
		return p.api, nil
	}
	select {
	case <-p.proc.Done():
		return nil, fmt.Errorf("codex: the process %s has ended (%v); see %s", p.proc.Name(), p.proc.Err(), p.proc.LogPath())
	default:
		return p.api, nil
	}
}

// of is a content that this node has or fetches.
func (p *peer) of(ref system.Ref) (*content, error) {
	if err := valid(ref); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c, there := p.contents[ref]
	if !there {
		return nil, fmt.Errorf("codex: %s was neither published nor fetched at %s: %w", ref, p.label, system.ErrNotFound)
	}
	return c, nil
}

// busy is an error while a content other than but is being fetched.
func (p *peer) busy(but system.Ref) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ref, c := range p.contents {
		if ref != but && !c.complete() {
			return fmt.Errorf("codex: %s is still fetching %s: it does not tell whose the blocks are that come, so that there is one content at a time", p.label, ref)
		}
	}
	return nil
}

// Address implements system.Connector. It stays the same over restarts.
func (p *peer) Address(context.Context) (string, error) { return p.address, nil }

// dialTimeout is how long a node may try to reach a peer.
const dialTimeout = 5 * time.Second

// Connect implements system.Connector. The node says yes to any address when it
// is connected to the peer already.
func (p *peer) Connect(ctx context.Context, address string) error {
	a, err := p.alive()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return a.connect(ctx, address)
}

// Publish implements system.Member. The CID depends on the name, too.
func (p *peer) Publish(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	a, err := p.alive()
	if err != nil {
		return "", err
	}
	if err := p.busy(""); err != nil {
		return "", err
	}
	ref, err := a.store(ctx, disk.PortableName(name), size, r)
	if err != nil {
		return "", fmt.Errorf("codex: publish %q (%d bytes): %w", name, size, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.contents[ref] = &content{peer: p, ref: ref, size: size, verified: size}
	return ref, nil
}

// Fetch implements system.Member.
func (p *peer) Fetch(ctx context.Context, ref system.Ref, from []string) error {
	if err := valid(ref); err != nil {
		return err
	}
	for _, address := range from {
		if _, _, err := parseAddress(address); err != nil {
			return err
		}
	}
	a, err := p.alive()
	if err != nil {
		return err
	}
	if err := p.busy(ref); err != nil {
		return err
	}
	p.mu.Lock()
	c, there := p.contents[ref]
	p.mu.Unlock()
	if !there {
		ctx, cancel := context.WithTimeout(ctx, answer)
		defer cancel()
		before, err := a.space(ctx)
		if err != nil {
			return err
		}
		c = &content{peer: p, ref: ref, size: -1, before: before.TotalBlocks}
		p.mu.Lock()
		p.contents[ref] = c
		p.mu.Unlock()
	}
	c.begin(from)
	return nil
}

// Progress implements system.Member, by the number of blocks in the store. The
// node tells neither what was received nor what was sent.
func (p *peer) Progress(ctx context.Context, ref system.Ref) (f system.Progress, err error) {
	c, err := p.of(ref)
	if err != nil {
		return f, err
	}
	a, err := p.alive()
	if err != nil {
		return f, err
	}
	if !c.complete() {
		ctx, cancel := context.WithTimeout(ctx, answer)
		defer cancel()
		now, err := a.space(ctx)
		if err != nil {
			return f, err
		}
		c.hold(now.TotalBlocks)
	}
	return c.fetched(), nil
}

// ReadBack implements system.Member. What is not all there is not asked for:
// the node would fetch the rest.
func (p *peer) ReadBack(ctx context.Context, ref system.Ref, w io.Writer) error {
	f, err := p.Progress(ctx, ref)
	if err != nil {
		return err
	}
	if !f.Complete {
		return fmt.Errorf("codex: %s has %d of %d bytes of %s: %w", p.label, f.Verified, f.Size, ref, system.ErrNotFound)
	}
	a, err := p.alive()
	if err != nil {
		return err
	}
	wait := patience.Wait{What: fmt.Sprintf("codex: GET %s on %s", data(ref), p.base.Host), Head: answer, Body: p.stallAfter}
	resp, err := wait.Do(ctx, func(ctx context.Context) (*http.Response, error) { return a.open(ctx, data(ref)) })
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("codex: read %s back: %w", ref, err)
	}
	return nil
}

// Forget implements system.Member. A fetch that is under way goes on whatever
// is deleted: the node is started again to end it.
func (p *peer) Forget(ctx context.Context, ref system.Ref) error {
	c, err := p.of(ref)
	if err != nil {
		return err
	}
	if _, err := p.alive(); err != nil {
		return err
	}
	c.stop()
	if !c.complete() {
		if err := p.Restart(ctx, true); err != nil {
			return err
		}
	}
	a, err := p.alive()
	if err != nil {
		return err
	}
	if err := a.remove(ctx, ref); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.contents, ref)
	return nil
}

// pause ends what asks the node for contents.
func (p *peer) pause() {
	p.mu.Lock()
	var all []*content
	for _, c := range p.contents {
		all = append(all, c)
	}
	p.mu.Unlock()
	for _, c := range all {
		c.stop()
	}
}

// Kill implements system.Restarter.
func (p *peer) Kill(context.Context) error {
	p.pause()
	ended, cancel := context.WithCancel(context.Background())
	cancel() // no time to end by itself
	return p.end(ended)
}

func (p *peer) end(ctx context.Context) error {
	p.mu.Lock()
	proc, a := p.proc, p.api
	p.mu.Unlock()
	a.web.Close()
	if proc == nil {
		return nil
	}
	return proc.Stop(ctx)
}

// Restart implements system.Restarter: with the same key and ports. A fetch goes
// on when it is asked for again.
func (p *peer) Restart(ctx context.Context, keep bool) error {
	p.pause()
	if err := p.end(ctx); err != nil {
		return err
	}
	if !keep {
		if err := empty(p.dir); err != nil {
			return fmt.Errorf("codex: empty the store of %s: %w", p.label, err)
		}
		p.mu.Lock()
		clear(p.contents)
		p.mu.Unlock()
	}
	if _, err := p.run(ctx); err != nil {
		return fmt.Errorf("codex: restart: %w", err)
	}
	a, err := p.alive()
	if err != nil {
		return err
	}
	is, err := a.address(ctx)
	if err == nil && is != p.address {
		err = fmt.Errorf("codex: %s was at %s and is at %s after a restart", p.label, p.address, is)
	}
	return err
}

// empty removes what a node keeps, but for its key.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Name() != keyFile {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// Health implements system.Healther.
func (p *peer) Health(ctx context.Context) error {
	a, err := p.alive()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	_, err = a.space(ctx)
	return err
}

// Processes implements system.Node.
func (p *peer) Processes() []*testbed.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc == nil {
		return nil
	}
	return []*testbed.Process{p.proc}
}

// Stop implements group.Node.
func (p *peer) Stop(ctx context.Context) error {
	p.pause()
	return p.end(ctx)
}

// connect makes a node dial another.
func (a *api) connect(ctx context.Context, address string) error {
	addr, id, err := parseAddress(address)
	if err != nil {
		return err
	}
	_, err = a.text(ctx, "/connect/"+url.PathEscape(id), url.Values{"addrs": {addr}}, web.Call{Method: http.MethodGet})
	return err
}

// parseAddress takes a node's address apart: where it is, and its id.
func parseAddress(address string) (at, id string, err error) {
	at, id, ok := strings.Cut(address, "/p2p/")
	if !ok || at == "" || id == "" || strings.Contains(id, "/") {
		return "", "", fmt.Errorf("codex: connect to %q: an address is like /ip4/10.0.0.1/tcp/4000/p2p/16Uiu2…", address)
	}
	return at, id, nil
}
