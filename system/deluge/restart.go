package deluge

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/plimsoll-project/plimsoll/system"
)

// Kill implements system.Restarter.
func (n *node) Kill(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("deluge: kill %s: %w", n.label, context.Cause(ctx))
	}
	n.rest()
	now, cancel := context.WithCancel(ctx)
	cancel() // a stop without time is SIGKILL
	if err := n.process().Stop(now); err != nil {
		return fmt.Errorf("deluge: kill %s: %w", n.label, err)
	}
	return nil
}

// Restart implements system.Restarter. The daemon's own notes are removed, above
// all its resume data: a file may have changed since they were taken. With the
// data kept the node gives it its torrents anew, and it hashes what is there of
// them before it uses or serves any. It has forgotten its peers.
func (n *node) Restart(ctx context.Context, keep bool) error {
	fail := func(err error) error { return fmt.Errorf("deluge: restart %s: %w", n.label, err) }
	if err := n.Kill(ctx); err != nil {
		return err
	}
	n.client.Close()
	if err := os.RemoveAll(n.configDir()); err != nil {
		return fail(err)
	}
	if !keep {
		n.mu.Lock()
		n.tasks = map[system.Ref]*task{}
		n.mu.Unlock()
		if err := os.RemoveAll(n.dataDir()); err != nil {
			return fail(err)
		}
	}
	if err := n.start(ctx); err != nil {
		return fail(err)
	}
	var errs []error
	for _, t := range n.all() {
		errs = append(errs, n.add(ctx, t, false))
	}
	if err := errors.Join(errs...); err != nil {
		return fail(err)
	}
	return nil
}

// all are the node's tasks.
func (n *node) all() []*task {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []*task
	for _, t := range n.tasks {
		all = append(all, t)
	}
	return all
}
