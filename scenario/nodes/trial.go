// Package nodes contains the common parts of trials that poll the progress of nodes while faults
// begin and end: the life of a node, polls, faults, links and recovery.
package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Actions are the actions of a scenario on a node of its trial.
type Actions interface {
	// Start gives a timed node its task. The node is polled once Start has returned.
	Start(ctx context.Context, n *Node) error
	// Poll asks a timed node for its progress.
	Poll(ctx context.Context, n *Node) (Answer, error)
	// Kill ends a node's daemon at once.
	Kill(ctx context.Context, n *Node) error
	// Restart restarts a node that was killed or died, with its data or empty. A timed node
	// gets its task again afterwards.
	Restart(ctx context.Context, n *Node, empty bool) error
}

// Trial is a trial that polls the progress of nodes while faults begin and end. Mu protects
// everything that changes during the load.
type Trial struct {
	Site   scenario.Site
	Sink   scenario.Sink
	Rates  map[int]scenario.Rates // rates of nodes whose links differ from the cell's, by place
	Nodes  []*Node                // nodes that take part
	Timed  []*Node                // the timed ones, in the order of their releases
	Faults []*Fault
	Goal   int64       // what each timed node has to get, in the unit of its answers
	Bytes  int64       // bytes of the goals of all timed nodes together
	Done   func(*Node) // called with Mu held when a node has reached its goal; may be nil

	Mu       sync.Mutex
	During   context.Context // ends with the load
	Released time.Duration   // start of the load, since the epoch
	Ended    time.Duration   // end of the load
	Notes    []string

	actions  Actions
	every    time.Duration // interval of a node's polls
	patience time.Duration // limit for the answer to a poll
	stall    time.Duration
	deadline time.Duration
	Starting time.Duration // limit for the start of a node
	group    sync.WaitGroup
	changed  chan struct{} // signals a change that await has to look at
	received []float64     // bytes over each node's link during the load; NaN: unknown
	sent     []float64
	changing sync.Mutex    // serializes changes of links
	active   []*Fault      // faults that change links now
	pending  int           // scheduled faults that are not over, including their undoing
	hope     time.Duration // until when stalled nodes may continue, after a fault began or was undone
	marks    []record.Mark
	stalls   int
	affected []*recovery
	failure  atomic.Pointer[error] // why the trial cannot continue
}

// Node is a node of the deployment. The trial's lock protects the fields that change during the
// load.
type Node struct {
	Place  int
	Name   string
	System system.Node
	Stale  bool // its daemon was killed, died or did not start, and needs a restart before further use

	Left bool // it left on purpose and serves nothing any more
	Progress

	timed   bool
	starts  int  // increases with each kill in this trial; answers with an older value are void
	down    bool // killed on purpose, not yet back
	died    bool
	watched map[testbed.Process]bool
	// recovery is the node's pending recovery. A node that two faults strike at a time recovers
	// once, from the one that is undone last.
	recovery *recovery
}

// Serving reports whether the node can be polled. The caller holds the lock.
func (n *Node) Serving() bool { return !n.down && !n.died && !n.Left }

// Killed reports whether a fault has killed the node in this trial. The caller holds the lock.
func (n *Node) Killed() bool { return n.starts > 0 }

// longestQuestion is the upper limit for the answer to a poll.
const longestQuestion = 10 * time.Second

// startMargin is the time for a node to end and to clear its store, in addition to limits.start.
const startMargin = 15 * time.Second

// New returns a trial whose nodes are polled at an interval.
func New(site scenario.Site, sink scenario.Sink, every time.Duration, rates map[int]scenario.Rates,
	actions Actions) *Trial {
	limits := site.Limits
	t := &Trial{
		Site: site, Sink: sink, Rates: rates, actions: actions, changed: make(chan struct{}, 1), every: every,
		// A stall can only be noticed over several polls.
		stall: max(limits.Stall.Std(), 3*every), deadline: limits.Deadline.Std(), Starting: limits.Start.Std() +
			startMargin,
	}
	t.patience = min(longestQuestion, max(every, t.stall/2))
	return t
}

// Add adds nodes in the state of a trial's beginning.
func (t *Trial) Add(all ...*Node) {
	for _, n := range all {
		*n = Node{Place: n.Place, Name: n.Name, System: n.System, Stale: n.Stale, watched: map[testbed.Process]bool{}}
		t.Nodes = append(t.Nodes, n)
	}
}

// Time makes a node timed, starting at an offset from the release.
func (t *Trial) Time(n *Node, offset time.Duration) {
	n.timed, n.Released = true, offset
	t.Timed = append(t.Timed, n)
}

// Now returns the time since the epoch. It is never 0, which means "not yet" in fields.
func (t *Trial) Now() time.Duration { return max(1, time.Since(t.Sink.Epoch)) }

// Event records an event of the trial, at a time since the epoch.
func (t *Trial) Event(kind, what, detail string, at, took time.Duration) {
	err := t.Sink.Event(record.Event{At: t.Sink.Epoch.Add(at), Kind: kind, What: what, Detail: detail, Took: took})
	if err != nil {
		t.fail(err)
	}
}

// Note adds a sentence to the report. The caller holds the lock.
func (t *Trial) Note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// Failed returns an error that names the system and the failed step.
func (t *Trial) Failed(what string, err error) error {
	return fmt.Errorf("%s: %s: %w", t.Site.Use.Name, what, err)
}

// fail ends the trial because it could not be executed or recorded. It may be called with or
// without the lock.
func (t *Trial) fail(err error) {
	t.failure.CompareAndSwap(nil, &err)
	t.wake()
}

// wake makes await look at the trial again.
func (t *Trial) wake() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// Run executes the load: it releases the timed nodes and returns when the outcome of each is
// decided. cpu is the CPU time of this process during the load, in seconds.
func (t *Trial) Run(ctx context.Context) (cpu float64, err error) {
	before := t.traffic(ctx)
	t.Sink.Begin()
	spent := timing.SelfCPU()
	err = t.run(ctx)
	cpu = timing.SelfCPU() - spent
	for i, now := range t.traffic(context.WithoutCancel(ctx)) {
		t.received = append(t.received, now.Received-before[i].Received)
		t.sent = append(t.sent, now.Sent-before[i].Sent)
	}
	t.Sink.End()
	t.conclude(err == nil)
	return cpu, err
}

func (t *Trial) run(ctx context.Context) error {
	load, cancel := context.WithCancel(ctx)
	t.Mu.Lock()
	t.During = load
	t.Released = t.Now()
	for _, n := range t.Nodes {
		t.watchProcesses(n)
	}
	for _, n := range t.Timed {
		n.Released += t.Released
	}
	t.schedule()
	for i, n := range t.Timed {
		t.group.Go(func() { t.accompany(i, n) })
	}
	t.Mu.Unlock()
	err := t.await()
	t.Ended = t.Now()
	cancel()
	t.group.Wait()
	return err
}

// Go calls do concurrently with the load. The caller holds the lock, and the load is not over.
func (t *Trial) Go(do func()) { t.group.Go(do) }

// await waits until the load is over.
func (t *Trial) await() error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := t.failure.Load(); err != nil {
			return *err
		}
		t.Mu.Lock()
		now := t.Now()
		over, next := t.applyLimits(now)
		done := int64(0)
		for _, n := range t.Timed {
			if n.Outcome == record.OK && n.Ended > 0 {
				done++
			}
		}
		bytes := int64(t.share() * float64(t.Bytes))
		t.Mu.Unlock()
		t.Sink.Progress(done, bytes)
		if over {
			return nil
		}
		timer.Reset(next - now)
		select {
		case <-t.During.Done():
			return context.Cause(t.During)
		case <-t.changed:
		case <-timer.C:
		}
	}
}

// Until waits for a moment of the trial. It returns false if the load is over before.
func (t *Trial) Until(moment time.Duration) bool {
	return timing.Pause(t.During, moment-t.Now()) && t.During.Err() == nil
}

// share returns the share of their common goal that the nodes have reached. The caller holds the
// lock.
func (t *Trial) share() float64 {
	has := 0.0
	for _, n := range t.Timed {
		has += float64(n.Verified)
	}
	return has / (float64(t.Goal) * float64(len(t.Timed)))
}

// watchProcesses watches a node's daemon, and notes if it ends by itself. The caller holds the
// lock.
func (t *Trial) watchProcesses(n *Node) {
	starts := n.starts
	for _, p := range n.System.Processes() {
		if n.watched[p] {
			continue
		}
		n.watched[p] = true
		if n.timed && !n.tasked && testbed.Ended(p) {
			continue // process of an earlier trial: the node's task will start another
		}
		t.group.Go(func() {
			select {
			case <-t.During.Done():
				return
			case <-p.Done():
			}
			now := t.Now()
			t.Mu.Lock()
			defer t.Mu.Unlock()
			if n.starts != starts || n.down || n.died {
				return
			}
			n.Stale, n.died = true, true
			t.nodeFails(n, ClassDied, cmp.Or(p.Err(), errors.New("it ended")), now, 0)
		})
	}
}

// nodeFails records why a node does not run, of a class; a timed node ends with it. The caller holds the
// lock.
func (t *Trial) nodeFails(n *Node, class string, why error, at, took time.Duration) {
	t.Event("node", class, n.Name+": "+scenario.ShortError(why), at, took)
	switch {
	case !n.timed:
		t.Note("%s: %s, %.3g s after the start: %s", n.Name, class, (at - t.Released).Seconds(),
			scenario.ShortError(why))
	case !n.Left:
		n.lost(at, record.Error, class)
	}
	t.wake()
}

// NeedLinks returns a SkipError if the trial changes links that are not emulated, else nil. slow
// names the option behind Rates.
func (t *Trial) NeedLinks(slow string) error {
	ok, why := t.emulated()
	what := ""
	for _, f := range t.Faults {
		if f.Kind() != experiment.FaultCrash {
			what = fmt.Sprintf("the fault %q", f)
		}
	}
	if len(t.Rates) > 0 {
		what = slow
	}
	if ok || what == "" {
		return nil
	}
	return &scenario.SkipError{Why: fmt.Sprintf("%s changes links, and they are not emulated here: %s", what, why)}
}

// CleanLimit limits the cleanup of all nodes. The engine restores the links.
const CleanLimit = 5 * time.Minute

// atOnce limits the nodes that are prepared, verified or cleaned concurrently, since they are
// processes of one machine.
const atOnce = 4

// Each calls do for nodes, atOnce at a time, each with a time limit. After all have ended, it
// returns the first failure.
func (t *Trial) Each(ctx context.Context, all []*Node, what string, limit time.Duration,
	do func(context.Context, *Node) error) error {
	return t.each(ctx, atOnce, all, what, limit, do)
}

func (t *Trial) each(ctx context.Context, atOnce int, all []*Node, what string, limit time.Duration,
	do func(context.Context, *Node) error) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, n := range all {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := Within(ctx, limit, func(ctx context.Context) error { return do(ctx, n) }); err != nil {
				return t.Failed(n.Name+": "+what, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Within calls do with a time limit.
func Within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// NodesOf returns the nodes of a deployment, one for each host that the engine created.
func NodesOf(site scenario.Site) (all []*Node) {
	for i, n := range site.Cluster.Nodes() {
		all = append(all, &Node{Place: i, Name: fmt.Sprintf("%s-%02d", site.Use.Name, i+1), System: n})
	}
	return all
}

// NamesOf returns the names of nodes.
func NamesOf(all []*Node) []string {
	names := make([]string, len(all))
	for i, n := range all {
		names[i] = n.Name
	}
	return names
}

// Gone reports whether one of the node's processes has ended.
func (n *Node) Gone() bool { return slices.ContainsFunc(n.System.Processes(), testbed.Ended) }

// Op returns the result of a timed node as an operation of a kind. The caller holds the lock.
func (t *Trial) Op(n *Node, kind record.OpKind) record.Op {
	op := record.Op{
		Kind: kind, Worker: uint32(n.Place), Intended: scenario.Nanos(n.Released), Start: scenario.Nanos(n.Started),
		FirstByte: n.First.Nanoseconds(), LastByte: scenario.Nanos(n.Ended), Outcome: n.Outcome, Class: n.Class,
	}
	op.FirstByte = min(op.FirstByte, op.LastByte)
	return op
}

// Record sends operations and marks to the sink.
func (t *Trial) Record(ops []record.Op) error {
	slices.SortStableFunc(ops, func(a, b record.Op) int { return int(a.LastByte - b.LastByte) })
	var errs []error
	for part := range slices.Chunk(ops, record.BlockSize) {
		errs = append(errs, t.Sink.Block(record.AppendBlock(nil, part)))
	}
	slices.SortStableFunc(t.marks, func(a, b record.Mark) int { return int(a.End - b.End) })
	return errors.Join(append(errs, t.Sink.Marks(t.marks))...)
}

// Loaded returns the facts about the load that are common to all such trials. The caller holds
// the lock.
func (t *Trial) Loaded(cpu float64, names []string) scenario.Load {
	load := scenario.Load{Seconds: (t.Ended - t.Released).Seconds(), CPU: cpu}
	load.Details = slices.Concat(
		Details(record.DetailLinkReceived, names, t.received), Details(record.DetailLinkSent, names, t.sent),
		t.faultDetails())
	if emulated, _ := t.emulated(); emulated {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadEmulated, 1))
	}
	load.Details = append(load.Details, scenario.Fact(scenario.LoadStalls, float64(t.stalls)))
	load.Notes = t.Notes
	return load
}

// Details returns a detail for each node in their order, with −1 for values that are NaN or missing.
// If no value is known, it returns none.
func Details(kind string, names []string, values []float64) (all []record.Detail) {
	if !slices.ContainsFunc(values, func(v float64) bool { return !math.IsNaN(v) }) {
		return nil
	}
	for i, name := range names {
		d := record.Detail{Kind: kind, Name: name, Value: -1}
		if i < len(values) && !math.IsNaN(values[i]) {
			d.Value = values[i]
		}
		all = append(all, d)
	}
	return all
}

// Draw returns n of the places in random order.
func Draw(from []int, n int, seed uint64) []int { return Pick(from, Shuffled(len(from), seed)[:n]) }

// Pick returns the elements at places.
func Pick[T any](from []T, places []int) (all []T) {
	for _, i := range places {
		all = append(all, from[i])
	}
	return all
}

// Shuffled returns the numbers from 0 to n−1 in random order.
func Shuffled(n int, seed uint64) []int { return rand.New(rand.NewPCG(seed, 1)).Perm(n) }
