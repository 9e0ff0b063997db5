package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// removes reports whether the stored objects are removed in the end. A started
// system goes as a whole.
func (t *trial) removes() bool {
	_, can := t.node.(system.Deleter)
	return can && t.u.After == "remove" && t.site.Use.Mode == string(system.Attach)
}

// clear removes what the trial has stored, where that was asked for.
func (t *trial) clear(ctx context.Context) {
	if t.u.After != "remove" || t.site.Use.Mode != string(system.Attach) {
		return
	}
	if !t.removes() {
		t.site.Event("note", "objects not removed", fmt.Sprintf("%s: names that begin with %s: %v", t.site.Use.Name, t.pre, errCannotRemove), 0)
		return
	}
	var gone, stay, hangs int
	var why error
	for object := range t.set.Len() {
		if !t.stored(object) {
			continue
		}
		ref, ok := t.refOf(object)
		err := errors.New("its ref is not known any more")
		if ok {
			err = cmp.Or(ctx.Err(), errNotTried)
		}
		if ok && ctx.Err() == nil && hangs < scenario.RemoveHangs {
			if err = t.remove(ctx, system.Object{Ref: ref, Size: t.set.Object(object).Size}); errors.Is(err, context.DeadlineExceeded) {
				hangs++
			}
		}
		if err == nil {
			gone++
			continue
		}
		if stay++; why == nil {
			why = err
		}
	}
	if stay > 0 {
		t.site.Event("note", "objects not removed", fmt.Sprintf("%s: %d of %d, with names that begin with %s: %v", t.site.Use.Name, stay, stay+gone, t.pre, why), 0)
	}
}

// clearStopped bounds the removal after an exit condition: who set it waits.
const clearStopped = 30 * time.Minute

var errNotTried = errors.New("not tried after others hung")

// load is what the trial says of itself. cpu is this process's at its beginning.
func (t *trial) load(cpu float64) scenario.Load {
	absolute := int64(-1)
	if t.polls != nil {
		absolute = t.polls.gained()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	y := &t.tally
	load := scenario.Load{Seconds: (y.last - max(0, y.first)).Seconds(), CPU: scenario.SelfCPU() - cpu, RSSPeak: selfRSSPeak(), Notes: slices.Clone(t.notes)}
	if y.accepted > 0 && load.Seconds > 0 {
		load.AchievedRate = float64(y.accepted) / load.Seconds
	}
	load.Details = append(slices.Clone(t.probes), scenario.Fact(scenario.LoadObjects, float64(t.set.Len())), scenario.Fact(scenario.LoadAttempts, float64(y.session)), scenario.Fact(scenario.LoadNotCompared, float64(t.unread)))
	if t.settler() != nil {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadSettles, 1))
	}
	if absolute == 0 && y.accepted > 0 {
		load.Notes = append(load.Notes, fmt.Sprintf("nothing reached the storage servers: what they hold has not grown by a byte, though %d objects were accepted (small ones may be kept elsewhere, as Tahoe-LAFS keeps up to 55 bytes in the capability)", y.accepted))
	}
	if t.settler() != nil && y.accepted > y.durable && t.u.Until == "durable" {
		load.Notes = append(load.Notes, fmt.Sprintf("%d accepted objects were not seen durable: after %s (upload.settle) each gave its slot to the next, and was asked about again at the end", y.accepted-y.durable, t.u.Settle))
	}
	return load
}

// selfRSSPeak is the highest resident set of this process, in bytes.
func selfRSSPeak() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Maxrss) * 1024
}
