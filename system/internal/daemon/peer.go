package daemon

import (
	"context"
	"fmt"
	"io"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

// Peer is a daemon as a member of a swarm.
type Peer[A API] struct {
	*Daemon[A]
	member.Contents
	program *Program[A]
}

// Peered returns a running daemon as a member of a swarm.
func (k *Program[A]) Peered(n *Daemon[A]) *Peer[A] {
	p := &Peer[A]{Daemon: n, program: k, Contents: member.Contents{
		Backend: n.API, Name: k.Name, Title: n.Label, Redial: k.Redial, Ref: k.Ref, Runs: n.Alive,
	}}
	if k.Endless {
		p.Abandon = func(ctx context.Context) error { return p.Restart(ctx, true) }
	}
	return p
}

// ReadBack implements system.Member from the daemon's own blocks. It fails unless the content is
// complete: some daemons would fetch the rest.
func (p *Peer[A]) ReadBack(ctx context.Context, ref system.Ref, w io.Writer) error {
	f, err := p.Progress(ctx, ref)
	if err != nil {
		return err
	}
	if !f.Complete {
		return fmt.Errorf("%s: %s has %d of %d bytes of %s: %w", p.program.Name, p.Label, f.Verified, f.Size, ref,
			system.ErrNotFound)
	}
	resp, err := p.API.Local(ctx, ref) // a busy daemon that has the whole content may take long
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = p.API.Client().Copy(resp, w)
	return err
}

// Kill implements system.Restarter.
func (p *Peer[A]) Kill(ctx context.Context) error {
	p.Pause()
	p.API.Client().Close()
	return p.Process.Kill(ctx)
}

// Restart implements system.Restarter. A node that keeps its data continues its tasks from the
// blocks that it has.
func (p *Peer[A]) Restart(ctx context.Context, keep bool) error {
	err := p.Stop(ctx)
	if err == nil && !keep {
		err = p.program.empty(ctx, p.Daemon)
	}
	if err == nil {
		err = p.Restarted(keep, func() error {
			if err := p.run(ctx); err != nil {
				return err
			}
			is, err := p.API.Address(ctx)
			if err == nil && is != p.Self {
				err = fmt.Errorf("it was at %s and is at %s", p.Self, is)
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("%s: restart %s: %w", p.program.Name, p.Label, err)
	}
	return nil
}

// Health implements system.Healther.
func (p *Peer[A]) Health(ctx context.Context) error {
	if err := p.Alive(); err != nil {
		return err
	}
	if err := p.API.Ping(ctx); err != nil {
		return fmt.Errorf("%s: health probe of %s failed: %w", p.program.Name, p.Label, err)
	}
	return nil
}

// Stop implements group.Node.
func (p *Peer[A]) Stop(ctx context.Context) error {
	p.Pause()
	return p.Daemon.Stop(ctx)
}
