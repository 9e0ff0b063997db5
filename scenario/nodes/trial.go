// Package nodes is what trials have in common whose nodes are polled for how far they are
// while faults come and go: a node's life, its polls, faults, links and recovery.
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
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Actions are what a scenario does with a node of its trial.
type Actions interface {
	// Start gives a node that is timed its task: from when it returns it is polled.
	Start(ctx context.Context, n *Node) error
	// Poll asks a node that is timed how far it is.
	Poll(ctx context.Context, n *Node) (Answer, error)
	// Kill ends a node's daemon at once.
	Kill(ctx context.Context, n *Node) error
	// Restart brings a node back that was killed, or that died: on its data, or
	// without. One that is timed is given its task again afterwards.
	Restart(ctx context.Context, n *Node, empty bool) error
}

// Trial is a trial in which nodes are polled for how far they are while faults
// come and go. What changes in the load is under its lock.
type Trial struct {
	Site     scenario.Site
	Sink     scenario.Sink
	Links    *Links
	Nodes    []*Node // that take part
	Timed    []*Node // of them, in the order in which they come
	Faults   []*Fault
	Goal     int64       // what each that is timed is to get, in the unit of its answers; 0: not known before
	Bytes    int64       // that the goals of all timed nodes amount to
	Done     func(*Node) // is called with the lock when one has all that it is to get; nil: nothing follows from it
	Lasting  bool        // a node that had all before it was ended has it, unless it lost its data
	Measured bool        // marks say what has crossed a node's link, and not what the node itself says

	Mu       sync.Mutex
	Load     context.Context // ends with the load
	Released time.Duration   // since the epoch: the load begins
	Ended    time.Duration   // of the load
	Notes    []string

	actions  Actions
	every    time.Duration // from poll to poll of a node
	patience time.Duration // for the answer to one
	stall    time.Duration
	deadline time.Duration
	Starting time.Duration // what a node may take to start
	group    sync.WaitGroup
	changed  chan struct{}      // something to judge has happened
	traffic  []scenario.Traffic // what had crossed each node's link when the load began
	after    []scenario.Traffic // likewise when it was over
	pending  int                // faults that have a moment and are not over, and their undoings
	hope     time.Duration      // until when those that stall may go on: a fault came or was undone
	marks    []record.Mark
	progress time.Time // of the last report
	stalls   int
	affected []*recovery
	failure  atomic.Pointer[error] // why the trial cannot go on
}

// Node is a node of the deployment. What is not set before the load is under the
// trial's lock.
type Node struct {
	Place  int
	Name   string
	System system.Node
	Stale  bool // its daemon was killed, died or did not start: it has to be started anew before it is used again

	Offset time.Duration // of one that is timed, from the release of all to its own
	Left   bool          // it went on purpose: it serves nothing any more
	Progress

	timed   bool
	starts  int  // of its daemon in this trial: answers of an earlier one are void
	down    bool // killed on purpose, and not back
	died    error
	watched map[testbed.Process]bool
	// recovery is what is under way of its recovery: one that two faults strike at a time recovers
	// once, from the last that is undone.
	recovery *recovery
}

// Serving reports whether the node can be asked. With the lock.
func (n *Node) Serving() bool { return !n.down && n.died == nil && !n.Left }

// Killed reports whether a fault has killed the node in this trial. With the lock.
func (n *Node) Killed() bool { return n.starts > 0 }

// longestQuestion is how long an answer to how far a node is may take at most.
const longestQuestion = 10 * time.Second

// startMargin is what a node may take to end and to clear its store, beside
// limits.start.
const startMargin = 15 * time.Second

// New lays out a trial whose nodes are polled at an interval. rates are those
// of nodes whose links differ from what the cell says, by place.
func New(site scenario.Site, sink scenario.Sink, every time.Duration, rates map[int]scenario.Rates,
	actions Actions) *Trial {
	limits := site.Limits
	t := &Trial{
		Site: site, Sink: sink, Links: &Links{network: site.Network, Rates: rates}, actions: actions,
		changed: make(chan struct{}, 1), every: every,
		// Nothing can be said of less time than a few polls take.
		stall: max(limits.Stall.Std(), 3*every), deadline: limits.Deadline.Std(), Starting: limits.Start.Std() +
			startMargin,
	}
	t.patience = min(longestQuestion, max(every, t.stall/2))
	return t
}

// Add makes nodes take part, as they are at the beginning of a trial.
func (t *Trial) Add(all ...*Node) {
	for _, n := range all {
		*n = Node{Place: n.Place, Name: n.Name, System: n.System, Stale: n.Stale, watched: map[testbed.Process]bool{}}
		t.Nodes = append(t.Nodes, n)
	}
}

// Time makes a node of the trial one that is timed, from some time after the release on.
func (t *Trial) Time(n *Node, offset time.Duration) {
	n.timed, n.Offset = true, offset
	t.Timed = append(t.Timed, n)
}

// Now is the time since the epoch. It is never 0, which says of a moment that it
// has not come.
func (t *Trial) Now() time.Duration { return max(1, time.Since(t.Sink.Epoch)) }

// Event records something that happened in the trial, at a moment since the epoch.
func (t *Trial) Event(kind, what, detail string, at, took time.Duration) {
	err := t.Sink.Event(record.Event{At: t.Sink.Epoch.Add(at), Kind: kind, What: what, Detail: detail, Took: took})
	if err != nil {
		t.fail(err)
	}
}

// Note keeps a sentence for the report. With the lock.
func (t *Trial) Note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// Failed is why the trial cannot be executed.
func (t *Trial) Failed(what string, err error) error {
	return fmt.Errorf("%s: %s: %w", t.Site.Use.Name, what, err)
}

// fail ends the trial: it could not be executed, or not be recorded. It may be
// called with the lock or without.
func (t *Trial) fail(err error) {
	t.failure.CompareAndSwap(nil, &err)
	t.wake()
}

// wake lets the trial be judged anew.
func (t *Trial) wake() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// ErrOver ends what goes on beside the load when that is over.
var ErrOver = errors.New("the trial's load is over")

// Run executes the load: it releases the nodes that are timed and returns when it is
// decided what becomes of each. cpu is what it took of this process, in seconds.
func (t *Trial) Run(ctx context.Context) (cpu float64, err error) {
	t.traffic = t.Links.traffic(ctx)
	t.Sink.Begin()
	before := scenario.SelfCPU()
	err = t.run(ctx)
	cpu = scenario.SelfCPU() - before
	t.after = t.Links.traffic(context.WithoutCancel(ctx))
	t.Sink.End()
	t.conclude(err == nil)
	return cpu, err
}

func (t *Trial) run(ctx context.Context) error {
	load, cancel := context.WithCancelCause(ctx)
	t.Mu.Lock()
	t.Load = load
	t.Released = t.Now()
	for _, n := range t.Nodes {
		t.watchProcesses(n)
	}
	for _, n := range t.Timed {
		n.Released = t.Released + n.Offset
	}
	t.plan()
	t.reached()
	for i, n := range t.Timed {
		t.group.Go(func() { t.accompany(i, n) })
	}
	t.Mu.Unlock()
	err := t.await()
	t.Ended = t.Now()
	cancel(ErrOver)
	t.group.Wait()
	return err
}

// Go does something beside the load; with the lock, before the load is over.
func (t *Trial) Go(do func()) { t.group.Go(do) }

// progressEvery is how often the user learns how far the nodes are.
const progressEvery = 200 * time.Millisecond

// await returns when the load is over.
func (t *Trial) await() error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := t.failure.Load(); err != nil {
			return *err
		}
		t.Mu.Lock()
		now := t.Now()
		over, next := t.judge(now)
		done := int64(0)
		for _, n := range t.Timed {
			if n.Outcome == record.OK && n.Ended > 0 {
				done++
			}
		}
		bytes := int64(t.share() * float64(t.Bytes))
		t.Mu.Unlock()
		if t.Sink.Progress != nil && time.Since(t.progress) >= progressEvery {
			t.progress = time.Now()
			t.Sink.Progress(done, bytes)
		}
		if over {
			return nil
		}
		timer.Reset(next - now)
		select {
		case <-t.Load.Done():
			return context.Cause(t.Load)
		case <-t.changed:
		case <-timer.C:
		}
	}
}

// Until waits for a moment of the trial; false: the load was over before.
func (t *Trial) Until(moment time.Duration) bool {
	timer := time.NewTimer(moment - t.Now())
	defer timer.Stop()
	select {
	case <-timer.C:
		return t.Load.Err() == nil
	case <-t.Load.Done():
		return false
	}
}

// share is what the nodes have got of all that they are to get. With the lock.
func (t *Trial) share() float64 {
	if t.Goal <= 0 {
		return 0
	}
	has := 0.0
	for _, n := range t.Timed {
		has += float64(n.Verified)
	}
	return has / (float64(t.Goal) * float64(len(t.Timed)))
}

// watchProcesses notes it when a node's daemon ends by itself. With the lock.
func (t *Trial) watchProcesses(n *Node) {
	starts := n.starts
	for _, p := range n.System.Processes() {
		if n.watched[p] {
			continue
		}
		n.watched[p] = true
		if n.timed && !n.tasked && Ended([]testbed.Process{p}) != nil {
			continue // of an earlier trial: its task starts another
		}
		t.group.Go(func() {
			select {
			case <-t.Load.Done():
				return
			case <-p.Done():
			}
			now := t.Now()
			t.Mu.Lock()
			defer t.Mu.Unlock()
			if n.starts != starts || n.down || n.died != nil {
				return
			}
			n.Stale, n.died = true, Ended([]testbed.Process{p})
			t.Event("node", ClassDied, n.Name+": "+scenario.ShortError(n.died), now, 0)
			switch {
			case !n.timed:
				t.Note("%s died %.3g s after the start", n.Name, (now - t.Released).Seconds())
			case !n.Left:
				n.lost(now, record.Error, ClassDied)
			}
			t.wake()
		})
	}
}

// NeedLinks is why a trial is left out whose links are changed, by slow (empty: they are
// not) or by a fault; nil: it is not.
func (t *Trial) NeedLinks(slow string) error {
	ok, why := t.Links.emulated()
	what := ""
	for _, f := range t.Faults {
		if f.Kind() != experiment.FaultCrash {
			what = fmt.Sprintf("the fault %q", f)
		}
	}
	if len(t.Links.Rates) > 0 {
		what = slow
	}
	if ok || what == "" {
		return nil
	}
	return &scenario.SkipError{Why: fmt.Sprintf("%s changes links, and they are not emulated here: %s", what, why)}
}

// cleanLimit is what cleaning all nodes may take.
const cleanLimit = 5 * time.Minute

// Clean restores the links, whatever has become of the trial, and lets clean do the rest.
func (t *Trial) Clean(ctx context.Context, clean func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanLimit)
	defer cancel()
	if err := t.Links.restore(ctx); err != nil {
		t.Event("error", "links not restored", scenario.ShortError(err), t.Now(), 0)
	}
	clean(ctx)
}

// atOnce is how many nodes are prepared, verified or cleaned at a time: they are
// processes of one machine.
const atOnce = 4

// Each does something with nodes, a few at a time, each within a limit. Its error is the
// first failure, after all have ended.
func (t *Trial) Each(ctx context.Context, all []*Node, what string, limit time.Duration,
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

// Within does something that may take no longer than limit.
func Within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}

// Take are the nodes of a deployment: as many as the engine made hosts for.
func Take(site scenario.Site) (all []*Node) {
	for i, n := range site.Cluster.Nodes() {
		all = append(all, &Node{Place: i, Name: fmt.Sprintf("%s-%02d", site.Use.Name, i+1), System: n})
	}
	return all
}

// NamesOf are the names of nodes.
func NamesOf(all []*Node) []string {
	names := make([]string, len(all))
	for i, n := range all {
		names[i] = n.Name
	}
	return names
}

// Ended is how one of a node's processes ended; nil: all run.
func Ended(all []testbed.Process) error {
	for _, p := range all {
		select {
		case <-p.Done():
			return cmp.Or(p.Err(), errors.New("it ended"))
		default:
		}
	}
	return nil
}

// Op is what became of a node that is timed, of a kind of operation. With the lock.
func (t *Trial) Op(n *Node, kind record.OpKind) record.Op {
	op := record.Op{
		Kind: kind, Worker: uint32(n.Place), Intended: scenario.Nanos(n.Released), Start: scenario.Nanos(n.Started),
		FirstByte: n.First.Nanoseconds(),
		LastByte:  scenario.Nanos(n.Ended), Outcome: n.Outcome, Class: n.Class,
	}
	op.FirstByte = min(op.FirstByte, op.LastByte)
	return op
}

// Record hands over operations and marks.
func (t *Trial) Record(ops []record.Op) error {
	slices.SortStableFunc(ops, func(a, b record.Op) int { return int(a.LastByte - b.LastByte) })
	var errs []error
	for part := range slices.Chunk(ops, record.BlockSize) {
		errs = append(errs, t.Sink.Block(record.AppendBlock(nil, part)))
	}
	slices.SortStableFunc(t.marks, func(a, b record.Mark) int { return int(a.End - b.End) })
	return errors.Join(append(errs, t.Sink.Marks(t.marks))...)
}

// Loaded is what the trial says of itself: what all such trials have in common. With the
// lock.
func (t *Trial) Loaded(cpu float64, names []string) scenario.Load {
	load := scenario.Load{Seconds: (t.Ended - t.Released).Seconds(), CPU: cpu}
	load.Details = slices.Concat(
		Details(record.DetailLinkReceived, names, func(i int) float64 { return t.since(t.after, i).Received }),
		Details(record.DetailLinkSent, names, func(i int) float64 { return t.since(t.after, i).Sent }),
		t.faultDetails())
	if emulated, _ := t.Links.emulated(); emulated {
		load.Details = append(load.Details, scenario.Fact(scenario.LoadEmulated, 1))
	}
	load.Details = append(load.Details, scenario.Fact(scenario.LoadStalls, float64(t.stalls)))
	load.Notes = t.Notes
	return load
}

// since is what has crossed the link of the node at a place since the load began; NaN: not known.
func (t *Trial) since(now []scenario.Traffic, place int) scenario.Traffic {
	if place >= min(len(t.traffic), len(now)) {
		return scenario.Traffic{Received: math.NaN(), Sent: math.NaN()}
	}
	then := t.traffic[place]
	return scenario.Traffic{Received: now[place].Received - then.Received, Sent: now[place].Sent - then.Sent}
}

// Details are numbers of all nodes, in their order, those of which nothing is
// known as −1. A kind of which nothing is known of any node is left out.
func Details(kind string, names []string, of func(place int) float64) []record.Detail {
	known := false
	each := make([]record.Detail, len(names))
	for i, name := range names {
		each[i] = record.Detail{Kind: kind, Name: name, Value: -1}
		if v := of(i); !math.IsNaN(v) {
			each[i].Value, known = v, true
		}
	}
	if !known {
		return nil
	}
	return each
}

// Draw takes n of some places, in an order of chance.
func Draw(from []int, n int, seed uint64) []int {
	out := make([]int, 0, n)
	for _, i := range Shuffled(len(from), seed)[:n] {
		out = append(out, from[i])
	}
	return out
}

// Shuffled are the first n numbers in an order of chance.
func Shuffled(n int, seed uint64) []int { return rand.New(rand.NewPCG(seed, 1)).Perm(n) }
