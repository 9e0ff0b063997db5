package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
)

// removes reports whether the stored objects are removed in the end. A started
// system goes as a whole.
func (t *uploadTrial) removes() bool {
	_, can := t.node.(system.Deleter)
	return can && t.u.After == "remove" && t.site.Use.Mode == string(system.Attach)
}

// clear removes what the trial has stored, where that was asked for.
func (t *uploadTrial) clear(ctx context.Context) {
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
		if ok && ctx.Err() == nil && hangs < removeHangs {
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
func (t *uploadTrial) load(cpu float64) Load {
	load := Load{Metrics: map[string]float64{}}
	if t.polls != nil {
		load.Metrics = t.polls.metrics()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	y := &t.tally
	load.CPU = selfCPU() - cpu
	load.RSSPeak = selfRSSPeak()
	load.Notes = slices.Clone(t.notes)
	load.Details = t.probes
	m := load.Metrics
	m["objects"] = float64(t.set.Len())
	m["accepted"], m["adopted"] = float64(y.accepted), float64(y.adopted)
	m["failed"], m["refused"], m["unreadable"], m["missing"] = float64(y.failed), float64(y.refused), float64(y.unreadable), float64(y.missing)
	m["accepted_bytes"] = float64(y.bytes)
	if t.settler() != nil {
		m["durable"], m["not_durable"] = float64(y.durable), float64(y.accepted-y.durable)
	}
	if t.u.Verify > 0 {
		m["verified"], m["verify_failed"] = float64(y.verified), float64(y.unverified)
	}
	if y.finished > 0 {
		m["success_rate"], m["puts_ended"] = 1-float64(y.failures)/float64(y.finished), float64(y.finished)
	}
	if y.touched > 0 {
		m["attempts_per_object"] = float64(y.begun) / float64(y.touched)
	}
	if s := y.accept; s.Count(record.Duration) > 0 {
		m["accept_p50"], m["accept_p95"] = s.Quantile(record.Duration, 0.5), s.Quantile(record.Duration, 0.95)
	}
	if s := y.settled; s.Count(record.Duration) > 0 {
		m["durable_p50"], m["durable_p95"] = s.Quantile(record.Duration, 0.5), s.Quantile(record.Duration, 0.95)
	}
	if y.session > 0 {
		m["generator_cpu_per_op"] = load.CPU / float64(y.session)
	}
	m["generator_rss_peak"] = load.RSSPeak
	load.Seconds = (y.last - max(0, y.first)).Seconds()
	if y.accepted > 0 && load.Seconds > 0 {
		load.AchievedRate = float64(y.accepted) / load.Seconds
		m["file_rate"], m["file_bandwidth"] = load.AchievedRate, float64(y.bytes)/load.Seconds
	}
	delete(m, "absolute_bandwidth") // of another window
	if t.polls != nil {
		if v, ok := t.polls.bandwidth(max(0, y.first), y.last); ok {
			m["absolute_bandwidth"] = v
		}
	}
	if gained, ok := m["absolute_bytes"]; ok && y.accepted > 0 {
		if gained == 0 {
			load.Notes = append(load.Notes, fmt.Sprintf("nothing reached the storage servers: what they hold has not grown by a byte, though %d objects were accepted (small ones may be kept elsewhere, as Tahoe-LAFS keeps up to 55 bytes in the capability)", y.accepted))
		}
		m["absolute_per_file"] = gained / float64(y.accepted)
		if y.bytes > 0 {
			m["expansion"] = gained / float64(y.bytes)
		}
		if gained > 0 {
			m["storage_efficiency"] = float64(y.bytes) / gained
		}
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
