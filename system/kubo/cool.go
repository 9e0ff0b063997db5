package kubo

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/plimsoll-project/plimsoll/system"
)

// Cool implements system.Cooler: the server's node pins all of the object, then
// the client's forgets it, with everything else that it has not pinned.
func (p private) Cool(ctx context.Context, ref system.Ref) error {
	o, ok := p.mine(ref)
	if !ok {
		return fmt.Errorf("kubo: cool %s: it is not ours: %w", ref, system.ErrReadOnly)
	}
	if err := p.reconnect(ctx); err != nil {
		return err
	}
	if !o.far {
		// Else we would remove the only copy.
		if err := p.far.quiet(ctx, "pin/add", url.Values{"arg": {string(ref)}}); err != nil {
			return fmt.Errorf("kubo: cool %s: copy it to the server's node: %w", ref, err)
		}
		p.mu.Lock()
		o.far = true
		p.ours[ref] = o
		p.mu.Unlock()
	}
	if err := p.near.forget(ctx, ref); err != nil {
		return fmt.Errorf("kubo: cool %s: %w", ref, err)
	}
	resp, err := p.near.call(ctx, "cat", url.Values{"arg": {string(ref)}, "offline": {"true"}})
	if err == nil {
		resp.Body.Close()
		return fmt.Errorf("kubo: cool %s: the client's node still has it after repo/gc; does something else pin its blocks? %w", ref, system.ErrWarm)
	}
	if !errors.Is(err, system.ErrNotFound) {
		return fmt.Errorf("kubo: cool %s: cannot tell whether it is cold: %w", ref, err)
	}
	return nil
}

// Delete implements system.Deleter, for what was stored through us. Blocks that
// another pin shares stay.
func (p private) Delete(ctx context.Context, ref system.Ref) error {
	o, ok := p.mine(ref)
	if !ok {
		return fmt.Errorf("kubo: delete %s: it is not ours: %w", ref, system.ErrReadOnly)
	}
	if err := p.near.forget(ctx, ref); err != nil {
		return fmt.Errorf("kubo: delete %s: %w", ref, err)
	}
	if o.far {
		if err := p.far.forget(ctx, ref); err != nil {
			return fmt.Errorf("kubo: delete %s: %w", ref, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.ours, ref)
	return nil
}

// forget removes the pin and the blocks that no other pin has.
func (r *rpc) forget(ctx context.Context, ref system.Ref) error {
	if err := r.unpin(ctx, ref); err != nil {
		return err
	}
	return r.gc(ctx)
}
