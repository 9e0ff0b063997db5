// Package overhead contains the scenario overhead, which measures the cost of an object beyond
// the transfer of its bytes.
package overhead

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// Scenario measures the cost of an object beyond the transfer of its bytes. It follows
// Tahoe-LAFS's performance notes: one operation after the other, over a ladder of sizes and
// round trips, so that the time can be split into a constant, a number of round trips, and a
// time per byte.
type Scenario struct{}

func (Scenario) Name() string { return "overhead" }

//go:embed metrics.txt
var definitions string

// Metrics implements Scenario.
func (Scenario) Metrics() []record.Metric {
	return append(scenario.Definitions(definitions, "overhead"), scenario.Machine()...)
}

// abilities maps operations to the required ability of a node if its name differs.
var abilities = map[string]string{"fill": "put", "put-durable": "durable", "put-dir": "directory", "get": "put"}

// Problems implements Scenario.
func (Scenario) Problems(use experiment.SystemUse, info system.Info, cells []experiment.Cell) []system.Problem {
	leaveOut := func(where string) string {
		return fmt.Sprintf("leave these cells out: add to where: \"system != %s || %s\"", use.Name, where)
	}
	needs := []scenario.Need{{Ability: "put", By: "the scenario overhead", Hint: "take it out of the experiment"}}
	if !info.Able("put") {
		return scenario.Unmet(info.Can, needs) // no condition on the cells would help
	}
	kept := false
	for _, c := range cells {
		o := c.Overhead
		if c.Data.Size == 0 {
			return []system.Problem{{What: "the scenario overhead measures objects that it stores, and may not write " +
				"to this system", Hint: "say allow: [write] if it may"}}
		}
		needs = append(needs, scenario.Need{Ability: cmp.Or(abilities[o.Operation], o.Operation),
			By: "the operation " + o.Operation, Hint: leaveOut("overhead.operation != " + o.Operation)})
		if o.Connections == "fresh" {
			needs = append(needs, scenario.Need{Ability: "fresh", By: "connections: fresh",
				Hint: leaveOut("overhead.connections != fresh")})
		}
		kept = kept || o.Connections == "keep"
	}
	problems := scenario.Unmet(info.Can, needs)
	if kept && info.Fresh {
		problems = append(problems, system.Problem{
			What: "each of its operations connects anew, so there is nothing that connections: keep could keep",
			Hint: fmt.Sprintf("under systems, write {use: %s, override: {connections: fresh}} in place of %s or, where "+
				"both are measured, %s", use.Use, use.Name, leaveOut("overhead.connections != keep"))})
	}
	return problems
}

// Measure computes the metrics of a trial; Metrics defines them.
func (Scenario) Measure(in scenario.Measured) map[string]float64 {
	m := map[string]float64{}
	put := scenario.Numbers(m)
	s, o := in.Summary, in.Cell.Overhead
	c := s.Counts()
	operationMetrics(&in, put)
	storedMetrics(&in, put)
	put("success_rate", float64(c.Outcomes[record.OK])/float64(c.Finished())) // without operations there is no rate
	switch {
	case o.Operation == "fill": // has several kinds of operations in one trial
		if v, ok := m["put_p50"]; ok {
			put("duration_p50", v)
		}
	case s.Count(record.Duration) > 0:
		put("duration_p50", s.KaplanMeier(record.Duration, 0.5))
		put("first_byte_p50", s.KaplanMeier(record.TTFB, 0.5))
	}
	if d := m["duration_p50"]; d > 0 && slices.Contains(operationsWith["throughput"], o.Operation) {
		put("throughput", float64(in.Cell.Data.Size)/d)
	}
	loadLines(in, m)
	put("generator_cpu_per_op", in.Load.CPU/float64(c.Ops))
	put("system_cpu_per_op", in.Usage.SystemCPU/float64(c.Ops))
	put("system_rss_peak", in.Usage.SystemRSSPeak)
	scenario.PutMachine(&in, put)
	return m
}

// operationMetrics puts the metrics that are computed from single operations, which are few.
func operationMetrics(in *scenario.Measured, put func(string, float64)) {
	o, c := in.Cell.Overhead, in.Summary.Counts()
	var busy time.Duration
	for op := range in.Ops {
		busy += time.Duration(op.LastByte - op.Start)
	}
	put("ops_rate", float64(c.Outcomes[record.OK])/busy.Seconds()*float64(o.Concurrency))
	if o.Operation != "fill" { // bytes per operation make no sense for several kinds
		if in.LoadDetail(scenario.LoadGaveUp) == 0 {
			put("wire_bytes", in.Detail(record.DetailLoad, scenario.LoadWire)/float64(c.Ops))
		}
		return
	}
	for kind, s := range scenario.ByKind(in.Ops) {
		put(kind.String()+"_p50", s.KaplanMeier(record.Duration, 0.5)) // cut-off operations are censored
	}
	put("stored_objects", in.Detail(record.DetailLoad, scenario.LoadHeld)+float64(o.Objects)/2)
}

// storedMetrics puts the cost to the servers of each object that was added between the two
// inventories.
func storedMetrics(in *scenario.Measured, put func(string, float64)) {
	grown := func(name string) float64 {
		return in.Detail(record.DetailHeldAfter, name) - in.Detail(record.DetailHeldBefore, name)
	}
	objects, bytes := grown("objects"), grown("bytes")
	if !(objects > 0) {
		return
	}
	put("absolute_per_op", grown("absolute")/objects)
	put("expansion", grown("absolute")/bytes)
	put("disk_per_byte", grown("disk")/bytes)
	put("entries_per_object", grown("entries")/objects)
	put("inodes_per_object", grown("inodes")/objects)
}

// leastWire is the least number of bytes, beyond the object's, that an operation puts on the
// link if it crosses it: frames of a request and its answer, with the protocol's content. Less
// is noise of idle connections.
const leastWire = 200

// loadLines adds the load lines of a trial whose operations cross the link. They do not include
// slow start, since a system may spread an object over connections to many servers, each with
// its own window.
func loadLines(in scenario.Measured, m map[string]float64) {
	p, ok := scenario.PathOf(in.Link)
	wire, counted := m["wire_bytes"]
	if !ok || !counted {
		return
	}
	o := in.Cell.Overhead
	size := 0.0
	if o.Operation != "stat" && o.Operation != "delete" {
		size = float64(in.Cell.Data.Size)
	}
	if wire < size+leastWire {
		return // answered on this side of the link, or accepted before crossing it
	}
	// Redundancy that servers make among themselves does not cross the client's link.
	moved := size
	if x := m["expansion"] * size; x > size && wire >= x {
		moved = x
	}
	first := p.Wait(scenario.Request{Fresh: o.Connections == "fresh", TLS: in.TLS})
	scenario.PutLine(m, "line", first+moved/p.Rate, "duration_p50")
	if m["first_byte_p50"] > 0 || slices.Contains(operationsWith["first_byte_p50"], o.Operation) {
		scenario.PutLine(m, "first_byte_line", first, "first_byte_p50")
	}
}

// object is a stored object of the run with its content.
type object struct {
	ref     system.Ref
	content workload.Content
}

// runner is one prepared system.
type runner struct {
	*scenario.CreatedObjects
	site scenario.Site
	node system.Store

	sets   map[set][]object // objects that cells read or change, or fill has added
	before []record.Detail  // inventory before the first fill; nil: no fill, or not reported by the system
	held   atomic.Int64     // number of the run's objects in the system
	bytes  atomic.Int64     // their file bytes

	inVain  atomic.Bool // the last wait for durability was in vain
	pending []object    // added by fill, not known to be durable
}

// set identifies a set of objects of one size.
type set struct {
	purpose string // "read", "range", "mutable", "fill"
	size    experiment.Bytes
}

// wantOf returns the set that a cell needs, and how many objects of it; 0: none.
func wantOf(c experiment.Cell) (s set, n int) {
	o := c.Overhead
	// Concurrent operations use different objects, since one must not read what another makes
	// cold. As many again are for prime, see pick.
	n = max(c.Data.Objects, o.Concurrency) + o.Concurrency
	switch o.Operation {
	case "get", "stat":
		return set{"read", c.Data.Size}, n
	case "range":
		return set{"range", o.RangeOf}, n
	case "update":
		return set{"mutable", c.Data.Size}, o.Concurrency
	}
	return set{}, 0
}

// wants returns the sets that cells need, each with the largest number of objects of any cell.
func wants(cells []experiment.Cell) map[set]int {
	all := map[set]int{}
	for _, c := range cells {
		if s, n := wantOf(c); n > 0 {
			all[s] = max(all[s], n)
		}
	}
	return all
}

// Prepares implements Scenario.
func (Scenario) Prepares(cells []experiment.Cell) (objects, bytes int64) {
	for s, n := range wants(cells) {
		objects += int64(n)
		bytes += int64(n) * int64(s.size)
	}
	return objects, bytes
}

// Prepare stores the objects that the cells read and change, in the system's quickest way, since
// this is not measured.
func (Scenario) Prepare(ctx context.Context, site scenario.Site, cells []experiment.Cell) (scenario.Runner, error) {
	node := site.Cluster.Nodes()[0].(system.Store)
	r := &runner{
		CreatedObjects: scenario.NewCreatedObjects(site.Use, node), site: site, node: node,
		sets: map[set][]object{},
	}
	begun := time.Now()
	needed := wants(cells)
	for _, c := range cells { // in the order of cells, not of the map
		s, _ := wantOf(c)
		if err := r.prepare(ctx, s, needed[s]); err != nil {
			return r, err
		}
		delete(needed, s)
	}
	for _, set := range r.sets { // so that no upload uses the link in a trial
		if _, err := r.settle(ctx, set...); err != nil {
			return r, err
		}
	}
	if slices.ContainsFunc(cells, func(c experiment.Cell) bool { return c.Overhead.Operation == "fill" }) {
		var err error
		if r.before, err = r.inventory(ctx, record.DetailHeldBefore); err != nil {
			return r, err
		}
	}
	site.Event("phase", "data ready", fmt.Sprintf("%s: %d objects", site.Use.Name, r.held.Load()), time.Since(begun))
	return r, nil
}

// store stores an object untimed, with [system.Seed] or [system.PutMutable].
func (r *runner) store(ctx context.Context, name string, c workload.Content, store func(context.Context, system.Store,
	string, int64, io.Reader) (system.Ref, error)) (system.Ref, error) {
	ref, err := store(ctx, r.node, name, c.Size, c.Reader())
	r.Add(name, ref)
	if err != nil {
		return ref, fmt.Errorf("%s: store object %s (%s): %w", r.site.Use.Name, name, experiment.Bytes(c.Size), err)
	}
	r.keep(1, c.Size)
	return ref, nil
}

// prepare stores one set.
func (r *runner) prepare(ctx context.Context, s set, n int) error {
	store := system.Seed
	if s.purpose == "mutable" {
		store = system.PutMutable
	}
	seed := scenario.MixSeed(r.site.Seed, s.purpose, int64(s.size)) // different content in each set
	for i := range n {
		c := workload.Content{Seed: seed, Index: uint64(i), Size: int64(s.size)}
		name := fmt.Sprintf("plimsoll-%s-%d-%d-%06d", s.purpose, r.site.Seed, c.Size, i)
		ref, err := r.store(ctx, name, c, store)
		if err != nil {
			return err
		}
		r.sets[s] = append(r.sets[s], object{ref, c})
	}
	return nil
}

// keep adds to the counts of the run's objects and bytes in the system; negative: removes.
func (r *runner) keep(objects, bytes int64) {
	r.held.Add(objects)
	r.bytes.Add(bytes)
}

// removed notes that an object was removed.
func (r *runner) removed(o system.Object) {
	r.Removed(o.Ref)
	r.keep(-1, -o.Size)
}

// settle waits until objects have their full redundancy, one after the other, if the system does
// that only after accepting them. Otherwise, their upload would share the link with the next
// operation and be part of its inventory. If a wait fails, settle returns the remaining objects,
// and the next wait is only brief. The error is non-nil only if ctx ended.
func (r *runner) settle(ctx context.Context, all ...object) (left []object, err error) {
	s, ok := r.node.(system.Settler)
	for i := 0; ok && i < len(all); i++ {
		limit := r.site.Limits.Deadline.Std()
		if r.inVain.Load() {
			limit = min(limit, scenario.SettleBriefly)
		}
		step, cancel := context.WithTimeout(ctx, limit)
		err := s.Settle(step, all[i].ref)
		cancel()
		if err != nil && ctx.Err() != nil {
			return all[i:], context.Cause(ctx)
		}
		if r.inVain.Store(err != nil); err != nil {
			return all[i:], nil
		}
	}
	return nil, nil
}

// inventory returns what the servers hold, with the number and bytes of the run's objects then, as
// details of a kind; nil if the system does not report it. It may walk disks, so it is never called
// while an operation is timed.
func (r *runner) inventory(ctx context.Context, kind string) (all []record.Detail, err error) {
	s, ok := r.node.(system.Stats)
	if !ok {
		return nil, nil
	}
	var h system.Holdings
	err = r.within(ctx, "ask what its servers hold", func(ctx context.Context) (err error) {
		h, err = s.Stats(ctx)
		return err
	})
	add := func(name string, v int64) {
		if err == nil && v >= 0 { // else the system did not report it
			all = append(all, record.Detail{Kind: kind, Name: name, Value: float64(v)})
		}
	}
	add("absolute", h.Absolute)
	add("bytes", r.bytes.Load())
	add("disk", h.Disk)
	add("entries", h.Entries)
	add("inodes", h.Inodes)
	add("objects", r.held.Load())
	return all, err
}

// within executes a step outside of operations, under the deadline of an operation. Its error
// names the step, and the deadline if that ended it.
func (r *runner) within(ctx context.Context, what string, do func(context.Context) error) error {
	limit := r.site.Limits.Deadline.Std()
	step, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := do(step)
	if err == nil {
		return nil
	}
	if ctx.Err() == nil && step.Err() != nil {
		err = fmt.Errorf("it took longer than %s: %w (%w)", limit, context.DeadlineExceeded, err)
	}
	return fmt.Errorf("%s: %s: %w", r.site.Use.Name, what, err)
}
