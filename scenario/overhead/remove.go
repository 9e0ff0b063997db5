package overhead

import (
	"context"
	"fmt"

	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// store keeps in mind what the trial has stored.
func (t *trial) store(o object) {
	t.keep(1, o.content.Size)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made = append(t.made, o)
}

// remove deletes what the trial has stored, where the system can, so that disks
// do not fill. It is bounded, and what it cannot remove is said.
func (t *trial) remove(ctx context.Context) {
	d, ok := t.node.(system.Deleter)
	if !ok || len(t.made) == 0 {
		return
	}
	if ctx.Err() != nil && t.site.Use.Mode != string(system.Attach) {
		return // the whole deployment goes
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scenario.RemoveTimeout)
	defer cancel()
	for i, o := range t.made {
		if err := d.Delete(ctx, o.ref); err != nil {
			t.site.Event("note", "objects not removed", fmt.Sprintf("%s: %d of %d: %v", t.site.Use.Name, len(t.made)-i, len(t.made), err), 0)
			return
		}
		t.Removed(o.ref)
		t.keep(-1, -o.content.Size)
	}
	t.made = nil
}
