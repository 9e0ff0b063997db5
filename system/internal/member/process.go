// Package member is the base of systems whose nodes are members of a swarm: processes that can be
// stopped and started again, and that get contents from each other. Plimsoll controls each node
// from its own host, so that only traffic between nodes crosses a link.
package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// Process is a daemon on a host that can be stopped and started again. Systems embed it.
type Process struct {
	System string // for errors
	Label  string // the process's name in its log and in messages
	Host   testbed.Host

	mu    sync.Mutex
	procs []testbed.Process
}

// Run starts the daemon and waits until it is ready. It stops a running process first.
func (p *Process) Run(ctx context.Context, c testbed.Command) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	c.Name, c.Role = p.Label, "system"
	proc, err := p.Host.Start(ctx, c)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.procs = []testbed.Process{proc}
	return nil
}

// Processes implements system.Node with the daemon's latest process.
func (p *Process) Processes() []testbed.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.procs
}

// Alive returns an error if the process has ended or was not started.
func (p *Process) Alive() error {
	all := p.Processes()
	if len(all) == 0 {
		return fmt.Errorf("%s: the process %s has not been started", p.System, p.Label)
	}
	if err := ended(all[0]); err != nil {
		return fmt.Errorf("%s: %w", p.System, err)
	}
	return nil
}

// ended returns an error if a process has ended.
func ended(p testbed.Process) error {
	if !testbed.Ended(p) {
		return nil
	}
	err := cmp.Or(p.Err(), errors.New("without an error"))
	return fmt.Errorf("the process %s has ended (%w); see %s", p.Name(), err, p.LogPath())
}

// WhileAlive returns a context derived from ctx that ends when one of the processes ends, with that
// as the cause.
func WhileAlive(ctx context.Context, processes ...testbed.Process) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	for _, p := range processes {
		go func() {
			select {
			case <-ctx.Done():
			case <-p.Done():
				cancel(ended(p))
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

// Explain adds to err that a process has ended, if one has: alive comes from [WhileAlive], or is
// nil.
func Explain(alive context.Context, err error) error {
	if err == nil || alive == nil || alive.Err() == nil {
		return err
	}
	if cause := context.Cause(alive); cause != context.Canceled {
		return fmt.Errorf("%w; %w", err, cause)
	}
	return err
}

// Kill implements system.Restarter; it does not fail if nothing runs.
func (p *Process) Kill(context.Context) error {
	now, cancel := context.WithCancel(context.Background())
	cancel() // no time for a clean shutdown
	return p.Stop(now)
}

// Stop shuts the process down cleanly; it may be called again.
func (p *Process) Stop(ctx context.Context) (err error) {
	for _, proc := range p.Processes() {
		err = proc.Stop(ctx)
	}
	return err
}
