package disseminate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// verify compares what leechers that have all, by their own word, have on their
// disks with the content, after the load. One that was killed when it had all is
// started again for it.
func (t *trial) verify(ctx context.Context) error {
	var whole []*nodes.Node
	for _, n := range t.Timed {
		if _, done := t.checked[n]; n.All > 0 && !done {
			whole = append(whole, n)
		}
	}
	begun := t.Now()
	// What went wrong with one is its outcome.
	limit := t.site.Limits.Deadline.Std() + t.Starting
	_ = t.Each(ctx, whole, "verify", limit, func(ctx context.Context, n *nodes.Node) error {
		t.check(ctx, n)
		return nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.Event("phase", "verified", fmt.Sprintf("%d leechers", len(whole)), begun, t.Now()-begun)
	return nil
}

// verdict is the outcome of a leecher that has all, from what was read back. With the
// lock.
func (t *trial) verdict(n *nodes.Node) (record.Outcome, string) {
	err, done := t.checked[n]
	switch {
	case !done: // the trial was cut short
		return record.Cancelled, ""
	case errors.Is(err, scenario.ErrWrongBytes):
		return record.WrongBytes, ""
	case err != nil:
		outcome, class, _ := scenario.OutcomeOf(err, nil)
		return outcome, "read back: " + cmp.Or(class, outcome.String())
	}
	return record.OK, ""
}

// check reads back what a leecher has, and compares it.
func (t *trial) check(ctx context.Context, n *nodes.Node) {
	err := t.readBack(ctx, n)
	if err != nil && !errors.Is(err, scenario.ErrWrongBytes) && ctx.Err() != nil &&
		context.Cause(ctx) == nodes.ErrOver {
		return // it is verified after the load
	}
	t.Mu.Lock()
	defer t.Mu.Unlock()
	t.checked[n] = err
	if errors.Is(err, scenario.ErrWrongBytes) {
		t.Event("violation", "wrong bytes", n.Name+" says that it has all", t.Now(), 0)
	}
}

// readBack is ErrWrongBytes when a leecher has something else than the content, or why that
// is not known.
func (t *trial) readBack(ctx context.Context, n *nodes.Node) error {
	t.Mu.Lock()
	serving := n.Serving()
	t.Mu.Unlock()
	if !serving || nodes.Ended(n.System.Processes()) != nil {
		err := nodes.Within(ctx, t.Starting, func(ctx context.Context) error { return restart(ctx, n, true) })
		if err != nil {
			return err
		}
	}
	check, err := workload.Check(t.set, 0)
	if err != nil {
		return err
	}
	err = nodes.Within(ctx, t.site.Limits.Deadline.Std(),
		func(ctx context.Context) error { return member(n).ReadBack(ctx, t.ref, check) })
	wrong := check.Close()
	if wrong == nil || err != nil && errors.Is(wrong, workload.ErrMissing) { // its error says why that is missing
		return err
	}
	return scenario.ErrWrongBytes
}

// leave lets a leecher that has all go, at a moment: what it has is compared, as
// that is not possible later, and its task and data are removed, so that it serves no
// other node any more. That is not how a user quits (its daemon runs on, with nothing to
// give), but it is what every system can do, and no crash. To compare takes CPU in
// the middle of the load.
func (t *trial) leave(n *nodes.Node, at time.Duration) {
	if !t.Until(at) {
		return
	}
	t.Mu.Lock()
	stays := !n.Serving() || n.DoneAt == 0
	t.Mu.Unlock()
	if stays { // it was killed meanwhile, or lost everything
		return
	}
	t.check(t.Load, n)
	if t.Load.Err() != nil {
		return
	}
	begun := t.Now()
	err := nodes.Within(t.Load, t.Starting, func(ctx context.Context) error { return member(n).Forget(ctx, t.ref) })
	now := t.Now()
	t.Mu.Lock()
	defer t.Mu.Unlock()
	switch {
	case t.Load.Err() != nil || !n.Serving():
		return
	case err != nil:
		t.Event("node", "not left", n.Name+": "+scenario.ShortError(err), now, now-begun)
	default:
		n.Left = true
		t.Event("node", "left", n.Name, begun, now-begun)
	}
}

// clean takes back what the trial has done to the nodes and the links, whatever
// has become of it. A node that cannot forget the content is started anew before
// it is used again. When the user has cancelled the run nodes are not used again: only
// the links, which are the machine's, are restored.
func (t *trial) clean(ctx context.Context) {
	cancelled := errors.Is(ctx.Err(), context.Canceled)
	t.Clean(ctx, func(ctx context.Context) {
		_ = t.Each(ctx, t.Nodes, "clean", time.Minute, func(ctx context.Context, n *nodes.Node) error {
			_, restarts := n.System.(system.Restarter)
			n.Stale = n.Stale || cancelled || nodes.Ended(n.System.Processes()) != nil
			switch {
			case n.Stale && restarts && !cancelled:
				return restart(ctx, n, false)
			case n.Stale || t.ref == "" || n.Left:
				return nil
			}
			if err := member(n).Forget(ctx, t.ref); err != nil && !errors.Is(err, system.ErrNotFound) {
				n.Stale = true
				t.Event("node", "content not forgotten", n.Name+": "+scenario.ShortError(err), t.Now(), 0)
			}
			return nil
		})
	})
}
