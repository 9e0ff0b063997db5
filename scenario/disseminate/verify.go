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

// verify compares the data on the disks of leechers that report to have all with the content,
// after the load. A leecher that was killed when it had all is restarted for it.
func (t *trial) verify(ctx context.Context) error {
	var whole []*nodes.Node
	for _, n := range t.Timed {
		if _, done := t.checked[n]; n.All > 0 && !done {
			whole = append(whole, n)
		}
	}
	begun := t.Now()
	// A failure becomes the outcome of the leecher.
	limit := t.site.Limits.Deadline.Std() + t.Starting
	_ = t.Each(ctx, whole, "verify", limit, func(ctx context.Context, n *nodes.Node) error {
		var err error
		if !n.Serving() || n.Gone() {
			err = nodes.Within(ctx, t.Starting, func(ctx context.Context) error { return restart(ctx, n, true) })
		}
		if err == nil {
			err = t.readBack(ctx, n)
		}
		t.Mu.Lock()
		defer t.Mu.Unlock()
		t.keep(n, err)
		return nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	t.Event("phase", "verified", fmt.Sprintf("%d leechers", len(whole)), begun, t.Now()-begun)
	return nil
}

// verdict returns the outcome of a leecher that reported to have all, from the data that was
// read back. The caller holds the lock.
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

// keep keeps what reading back the data of a leecher has shown. The caller holds the lock.
func (t *trial) keep(n *nodes.Node, err error) {
	t.checked[n] = err
	if errors.Is(err, scenario.ErrWrongBytes) {
		t.Event("violation", "wrong bytes", n.Name+" says that it has all", t.Now(), 0)
	}
}

// readBack compares the data of a leecher with the content. It returns ErrWrongBytes if they
// differ, or why they could not be compared.
func (t *trial) readBack(ctx context.Context, n *nodes.Node) error {
	check, err := workload.Check(t.set, 0)
	if err != nil {
		return err
	}
	err = nodes.Within(ctx, t.site.Limits.Deadline.Std(),
		func(ctx context.Context) error { return member(n).ReadBack(ctx, t.ref, check) })
	wrong := check.Close()
	if wrong == nil || err != nil && errors.Is(wrong, workload.ErrMissing) { // err, if any, is why bytes are missing
		return err
	}
	return scenario.ErrWrongBytes
}

// leave makes a leecher that has all leave at a moment. Its data is verified, which is not
// possible later, and its task and data are removed, so that it serves other nodes no more. A
// user would stop the daemon, which here runs on with nothing to serve; but every system can do
// this, and it is no crash. Verifying takes CPU in the middle of the load.
func (t *trial) leave(n *nodes.Node, at time.Duration) {
	if !t.Until(at) {
		return
	}
	t.Mu.Lock()
	stays := !n.Serving() || n.Ended == 0
	t.Mu.Unlock()
	if stays { // killed meanwhile, or lost everything
		return
	}
	err := t.readBack(t.During, n)
	t.Mu.Lock()
	over := t.During.Err() != nil || !n.Serving() // verify does it after the load
	if !over {
		t.keep(n, err)
	}
	t.Mu.Unlock()
	if over {
		return
	}
	begun := t.Now()
	err = nodes.Within(t.During, t.Starting, func(ctx context.Context) error { return member(n).Forget(ctx, t.ref) })
	now := t.Now()
	t.Mu.Lock()
	defer t.Mu.Unlock()
	switch {
	case t.During.Err() != nil || !n.Serving():
		return
	case err != nil:
		t.Event("node", "not left", n.Name+": "+scenario.ShortError(err), now, now-begun)
	default:
		n.Left = true
		t.Event("node", "left", n.Name, begun, now-begun)
	}
}

// clean reverts the trial's changes to nodes, even after a failure. A node that cannot forget the
// content is restarted before its next use, and so are all if the user has cancelled the run, since
// they will hardly be used again.
func (t *trial) clean(ctx context.Context) {
	cancelled := errors.Is(ctx.Err(), context.Canceled)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), nodes.CleanLimit)
	defer cancel()
	_ = t.Each(ctx, t.Nodes, "clean", time.Minute, func(ctx context.Context, n *nodes.Node) error {
		_, restarts := n.System.(system.Restarter)
		n.Stale = n.Stale || cancelled || n.Gone()
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
}
