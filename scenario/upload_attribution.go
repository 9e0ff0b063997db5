package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/workload"
)

// design is what a trial with attribution: true does, so that what makes a
// system slower can be told: the number of files, their bytes, or time.
//
// In an ordinary load test the three grow together. Here they grow one after the
// other, in phases:
//
//   - files: a sixth of the data section's objects, of one byte each
//   - bytes: a sixth of its bytes, in as few objects as are under way at once
//   - idle: nothing is stored, for as long as the longest of the other phases so
//     far took, and at least idlePolls intervals of the polls
//
// There are six rounds, each with every phase once, in each of the six possible
// orders; the seed chooses the order of the rounds. So each phase comes as often
// first, second and last, and follows each other one equally often within a
// round: drift and what one phase leaves for the next are no one's own. In the
// end each quantity was raised six times while the other two hardly moved (time
// cannot stand still while something is stored, which is why it is also raised
// alone).
//
// Before the first phase and at the end of each, the system is probed: probePuts
// objects of one byte are put, one at a time with nothing else under way, and
// then it is polled once beyond the schedule. Polls of the schedule go on
// through all phases. Each phase is an event of the trial, "attribution: files",
// with its bounds, what was stored by its end and what its probe took; the
// medians of the probes are details of the trial.
type design struct {
	phases []phase
	tiny   int64   // bytes of a file
	large  []int64 // bytes of each object of a phase
	total  int     // objects
}

// phase is one of them: the objects from (inclusive) to (exclusive) of the set,
// then the probe's, up to probed.
type phase struct {
	what             string // "start", "files", "bytes", "idle"
	round            int
	from, to, probed int
}

const (
	probePuts = experiment.AttributionProbe
	idlePolls = experiment.AttributionIdle
)

// designed makes the design for so many objects and bytes.
func designed(seed uint64, objects, bytes int64, concurrency int) *design {
	orders := [][]string{
		{"files", "bytes", "idle"}, {"files", "idle", "bytes"}, {"bytes", "files", "idle"},
		{"bytes", "idle", "files"}, {"idle", "files", "bytes"}, {"idle", "bytes", "files"},
	}
	rand.New(rand.NewPCG(seed, uint64(len(orders)))).Shuffle(len(orders), func(i, j int) { orders[i], orders[j] = orders[j], orders[i] })
	d := &design{tiny: 1}
	files, few, share := experiment.AttributionSteps(objects, bytes, concurrency)
	for i := range few {
		d.large = append(d.large, share/few+min(1, max(0, share%few-i)))
	}
	add := func(what string, round, n int) {
		p := phase{what: what, round: round, from: d.total, to: d.total + n, probed: d.total + n + probePuts}
		d.phases, d.total = append(d.phases, p), p.probed
	}
	add("start", 0, 0)
	for round, order := range orders {
		for _, what := range order {
			add(what, round+1, map[string]int{"files": int(files), "bytes": len(d.large)}[what])
		}
	}
	return d
}

// Len implements workload.Sizes.
func (d *design) Len() int { return d.total }

// Size implements workload.Sizes.
func (d *design) Size(i int) int64 {
	at, _ := slices.BinarySearchFunc(d.phases, i, func(p phase, i int) int { return p.probed - 1 - i })
	if p := d.phases[at]; p.what == "bytes" && i < p.to {
		return max(1, d.large[i-p.from])
	}
	return d.tiny
}

// String implements workload.Sizes.
func (d *design) String() string {
	var text string
	for _, p := range d.phases {
		text += fmt.Sprintf("%s %d-%d ", p.what, p.from, p.probed)
	}
	return fmt.Sprintf("attribution: %sof %d B and %v B", text, d.tiny, d.large)
}

// attributed makes the set of a trial with attribution from that of its data.
func (t *uploadTrial) attributed(of workload.Set) (workload.Set, error) {
	var bytes int64
	for i := range of.Len() {
		bytes += of.Object(i).Size
	}
	t.design = designed(t.seed, int64(of.Len()), bytes, t.u.Concurrency)
	return workload.NewSynthetic(t.design.total, t.design, nil, workload.Options{Seed: t.dataSeed(t.seed)})
}

// workPhases does the phases of the design that are not done.
func (t *uploadTrial) workPhases(ctx context.Context) error {
	longest, done, err := t.phasesDone()
	if err != nil {
		return err
	}
	for i, p := range t.design.phases {
		if i < done {
			continue
		}
		begun := t.sink.Now()
		t.queue.until(p.to)
		if p.what == "idle" {
			t.setIdle(true)
			pause(ctx, max(longest, idlePolls*t.u.Poll.Std()), nil)
			t.setIdle(false)
		} else if err := t.workers(ctx, t.u.Concurrency); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		ended := t.sink.Now()
		if p.what != "idle" {
			longest = max(longest, ended-begun)
		}
		t.setProbing(true)
		t.queue.until(p.probed)
		err := t.workers(ctx, 1)
		took := t.setProbing(false)
		if err == nil {
			err = t.polls.once(ctx)
		}
		if err == nil {
			err = t.phaseEnded(p, begun, ended, took)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const attributionEvent = "attribution: "

// phaseText is what the event of a phase says first: its number and bounds, in
// nanoseconds since the trial's epoch.
const phaseText = "phase %d from %d to %d ns: "

// probedText is what it says last: when its probe was over, likewise. Events of
// older releases lack it.
const probedText = "; probed until %d ns"

func (t *uploadTrial) phaseEnded(p phase, begun, ended time.Duration, took []float64) error {
	n := slices.Index(t.design.phases, p)
	t.mu.Lock()
	files, bytes := t.tally.accepted, t.tally.bytes
	name := fmt.Sprintf("%02d %s", n, p.what)
	probe := "no probe succeeded"
	if len(took) > 0 {
		median := stats.Median(took)
		probe = fmt.Sprintf("probe: %d puts of %d B, median %.4g s", len(took), t.design.tiny, median)
		t.probes = append(t.probes, record.Detail{Kind: record.DetailProbe, Name: name, Value: median})
	}
	t.mu.Unlock()
	return t.event("phase", attributionEvent+p.what, fmt.Sprintf(phaseText+"%.4g s, round %d; %s; stored so far: %d files, %d B"+probedText,
		n, begun, ended, (ended-begun).Seconds(), p.round, probe, files, bytes, t.sink.Now()))
}

// phasesDone is how many phases earlier sessions have done, and how long the
// longest of those took that stored something.
func (t *uploadTrial) phasesDone() (longest time.Duration, done int, err error) {
	for e, err := range t.sink.Journal.EarlierEvents() {
		if err != nil {
			return 0, 0, t.errorf("read the events of earlier sessions", err)
		}
		var n int
		var from, to time.Duration
		if e.Kind != "phase" {
			continue
		}
		if _, err := fmt.Sscanf(e.Detail, phaseText, &n, &from, &to); err != nil || n >= len(t.design.phases) {
			continue
		}
		done = max(done, n+1)
		p := t.design.phases[n]
		if p.what != "idle" {
			longest = max(longest, to-from)
		}
		var puts int
		var size int64
		var median float64
		if _, rest, ok := strings.Cut(e.Detail, "probe: "); ok {
			if _, err := fmt.Sscanf(rest, "%d puts of %d B, median %g s", &puts, &size, &median); err == nil {
				t.probes = append(t.probes, record.Detail{Kind: record.DetailProbe, Name: fmt.Sprintf("%02d %s", n, p.what), Value: median})
			}
		}
	}
	return longest, done, nil
}
