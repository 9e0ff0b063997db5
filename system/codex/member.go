package codex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

var (
	_ system.Member    = (*peer)(nil)
	_ system.Restarter = (*peer)(nil)
	_ system.Healther  = (*peer)(nil)
)

// peer is a node of a swarm. It says how many blocks it holds and not of what,
// so that it is given one content at a time to fetch.
type peer struct {
	*daemon
	address    string
	quiet      time.Duration // without a block, after which the node has given up
	stallAfter time.Duration // without a byte of a read

	mu       sync.Mutex
	contents map[system.Ref]*content
}

// retryEvery is what lies between a node's requests for a block.
const retryEvery = 2 * time.Second

// startSwarm brings up one node on each host, all alike.
func startSwarm(ctx context.Context, d system.Deployment, bin string, speaks dialect) (system.Cluster, error) {
	identity := map[string]string{
		"binary": bin, "quota": d.Options["quota"], "block_retries": d.Options["block_retries"], "discovery": "connect",
		"publish": "import into the node", "fetch": "POST /data/CID/network", "progress": "blocks in /space",
	}
	return group.Start(ctx, len(d.Hosts), identity, func(ctx context.Context, i int) (group.Node, error) {
		p, err := startPeer(ctx, d, i, bin, speaks)
		if err != nil {
			return nil, fmt.Errorf("codex: %w", err)
		}
		identity["version"], identity["dialect"] = p.version, p.api.dialect.String()
		return p, nil
	})
}

func startPeer(ctx context.Context, d system.Deployment, i int, bin string, speaks dialect) (*peer, error) {
	p := &peer{contents: map[system.Ref]*content{}}
	retries, err := d.Options.Int("block_retries")
	if err != nil {
		return nil, err
	}
	p.quiet = time.Duration(retries)*retryEvery + 10*time.Second
	if p.stallAfter, err = d.Options.Duration("stall_after"); err != nil {
		return nil, err
	}
	port, err := d.Port(ctx, d.Hosts[i])
	if err != nil {
		return nil, err
	}
	if p.daemon, err = newDaemon(ctx, d, d.Hosts[i], fmt.Sprintf("node-%d", i+1), bin, speaks, port, ""); err != nil {
		return nil, err
	}
	if p.address, err = p.api.Address(ctx); err != nil {
		return nil, errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
	}
	return p, nil
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
		return nil, fmt.Errorf("codex: %s was neither published nor fetched at %s: %w", ref, p.Label, system.ErrNotFound)
	}
	return c, nil
}

// busy is an error while a content other than but is being fetched.
func (p *peer) busy(but system.Ref) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ref, c := range p.contents {
		if ref != but && !c.complete() {
			return fmt.Errorf("codex: %s is still fetching %s: it does not say whose the blocks are that come, so there is one content at a time", p.Label, ref)
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
	if err := p.Alive(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return p.api.Connect(ctx, address)
}

// Publish implements system.Member. The CID depends on the name, too.
func (p *peer) Publish(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	if err := p.Alive(); err != nil {
		return "", err
	}
	if err := p.busy(""); err != nil {
		return "", err
	}
	ref, err := p.api.Store(ctx, name, size, r)
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
	if err := p.Alive(); err != nil {
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
		before, err := p.api.space(ctx)
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
// node counts neither what it received nor what it sent.
func (p *peer) Progress(ctx context.Context, ref system.Ref) (f system.Progress, err error) {
	c, err := p.of(ref)
	if err != nil {
		return f, err
	}
	if err := p.Alive(); err != nil {
		return f, err
	}
	if !c.complete() {
		ctx, cancel := context.WithTimeout(ctx, answer)
		defer cancel()
		now, err := p.api.space(ctx)
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
		return fmt.Errorf("codex: %s has %d of %d bytes of %s: %w", p.Label, f.Verified, f.Size, ref, system.ErrNotFound)
	}
	if err := p.Alive(); err != nil {
		return err
	}
	wait := web.Wait{What: fmt.Sprintf("codex: GET %s on %s", data(ref), p.api.base.Host), Head: answer, Body: p.stallAfter}
	resp, err := wait.Do(ctx, func(ctx context.Context) (*http.Response, error) { return p.api.open(ctx, data(ref)) })
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
	if err := p.Alive(); err != nil {
		return err
	}
	c.Stop()
	if !c.complete() {
		if err := p.Restart(ctx, true); err != nil {
			return err
		}
	}
	if err := p.Alive(); err != nil {
		return err
	}
	if err := p.api.Remove(ctx, ref); err != nil {
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
		c.Stop()
	}
}

// Kill implements system.Restarter.
func (p *peer) Kill(ctx context.Context) error {
	p.pause()
	p.api.web.Close()
	return p.Process.Kill(ctx)
}

// Restart implements system.Restarter: with the same key and ports. A fetch goes
// on when it is asked for again.
func (p *peer) Restart(ctx context.Context, keep bool) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	if !keep {
		if err := p.empty(); err != nil {
			return fmt.Errorf("codex: empty the store of %s: %w", p.Label, err)
		}
		p.mu.Lock()
		clear(p.contents)
		p.mu.Unlock()
	}
	if err := p.run(ctx); err != nil {
		return fmt.Errorf("codex: restart: %w", err)
	}
	is, err := p.api.Address(ctx)
	if err == nil && is != p.address {
		err = fmt.Errorf("codex: %s was at %s and is at %s after a restart", p.Label, p.address, is)
	}
	return err
}

// Health implements system.Healther.
func (p *peer) Health(ctx context.Context) error {
	if err := p.Alive(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	return p.api.Ping(ctx)
}

// Stop implements group.Node.
func (p *peer) Stop(ctx context.Context) error {
	p.pause()
	p.api.web.Close()
	return p.Process.Stop(ctx)
}
