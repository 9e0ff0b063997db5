package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// swarmRunner is one prepared swarm. Its nodes live through all trials.
type swarmRunner struct {
	site  Site
	nodes []*swarmNode
}

// swarmNode is a node of the deployment.
type swarmNode struct {
	place     int
	name      string
	node      system.Spreader
	restarter system.Restarter // nil: it cannot be started again
	stale     bool             // it has to be started anew before it is used again
}

// swarmTrial is one trial under way.
type swarmTrial struct {
	*swarmRunner
	cell   experiment.Cell
	d      *experiment.ResolvedDisseminate
	sink   Sink
	set    workload.Set // of one object
	size   int64
	name   string // of the content
	ref    system.Ref
	join   experiment.Join
	stay   experiment.Stay
	faults []*swarmFault
	links  *swarmLinks

	members  []*member // by place
	seeders  []*member
	leechers []*member // in the order in which they come

	every    time.Duration // from poll to poll of a leecher
	patience time.Duration // for the answer to one
	stall    time.Duration
	deadline time.Duration
	group    sync.WaitGroup // of everything that goes on at the same time
	load     context.Context
	changed  chan struct{} // something to judge has happened

	mu       sync.Mutex
	released time.Duration // since the epoch
	ended    time.Duration // of the load
	verified int64         // bytes of all leechers together
	most     int64         // the most that it has been
	done     int           // leechers that have all
	pending  int           // faults that have a moment and are not over, and their undoings
	hope     time.Duration // until when those that stall may go on: a fault came or was undone
	stalls   int
	marks    []record.Mark
	affected []*recovery
	said     time.Time // progress
	notes    []string

	failure atomic.Pointer[error] // why the trial cannot go on
}

// Trial implements Runner.
func (r *swarmRunner) Trial(ctx context.Context, cell experiment.Cell, seed uint64, sink Sink) (Load, error) {
	t, err := r.trial(cell, seed, sink)
	if err != nil {
		return Load{}, err
	}
	defer t.clean(ctx)
	if err := t.ready(ctx); err != nil {
		return Load{}, err
	}
	t.measure(ctx)
	cpu := selfCPU()
	err = t.run(ctx)
	cpu = selfCPU() - cpu
	t.measured(ctx)
	t.conclude(err == nil)
	if err == nil {
		t.lastWords(ctx)
		err = t.verify(ctx)
	}
	return t.loaded(cpu), errors.Join(err, t.record(), ctx.Err())
}

// trial lays out a trial: who is what, and when what is to happen.
func (r *swarmRunner) trial(cell experiment.Cell, seed uint64, sink Sink) (*swarmTrial, error) {
	d := cell.Disseminate
	fail := func(err error) (*swarmTrial, error) { return nil, fmt.Errorf("%s: %w", r.site.Use.Name, err) }
	if d.Nodes > len(r.nodes) || d.Leechers() < 1 || d.Seeders < 1 {
		return fail(fmt.Errorf("a swarm of %d nodes with %d seeders, of which %d are there", d.Nodes, d.Seeders, len(r.nodes)))
	}
	t := &swarmTrial{swarmRunner: r, cell: cell, d: d, sink: sink, changed: make(chan struct{}, 1)}
	var err error
	if t.join, err = experiment.ParseJoin(d.Join); err != nil {
		return fail(err)
	}
	if t.stay, err = experiment.ParseStay(d.Stay); err != nil {
		return fail(err)
	}
	faults, err := experiment.ParseFaults(d.Faults)
	if err != nil {
		return fail(err)
	}
	data := cell.Data
	data.Objects = 1
	if t.set, err = DataSet(data, mix(seed, "content", 0), r.site.Base); err != nil {
		return fail(err)
	}
	t.size = t.set.Object(0).Size
	t.name = fmt.Sprintf("plimsoll-%016x", mix(seed, "name", 0))

	limits := r.site.Limits
	t.every = cell.PollEvery()
	// Nothing can be said of less time than a few polls take.
	t.stall = max(limits.Stall.Std(), 3*t.every)
	t.deadline = limits.Deadline.Std()
	t.patience = min(longestQuestion, max(t.every, t.stall/2))

	who := chooseRoles(d, faults, r.site.Seed, seed, sink.Number)
	for _, n := range r.nodes[:d.Nodes] {
		t.members = append(t.members, &member{swarmNode: n})
	}
	for _, i := range who.seeders {
		t.seeders = append(t.seeders, t.members[i])
	}
	offsets := arrivals(t.join, len(who.leechers), mix(seed, "arrivals", 0))
	for k, i := range who.leechers {
		t.members[i].leecher = &leecher{offset: offsets[k]}
		t.leechers = append(t.leechers, t.members[i])
	}
	t.links = newSwarmLinks(r.site.Network, d, who.slow)
	for i, f := range faults {
		s := &swarmFault{Fault: f, part: make(chan struct{})}
		for _, v := range who.victims[i] {
			s.victims = append(s.victims, t.members[v])
		}
		slices.SortFunc(s.victims, func(a, b *member) int { return a.place - b.place })
		t.faults = append(t.faults, s)
	}
	return t, nil
}

// longestQuestion is how long an answer to how far a node is may take at most.
const longestQuestion = 10 * time.Second

// now is the time since the epoch. It is never 0, which says of a moment that it
// has not come.
func (t *swarmTrial) now() time.Duration { return max(1, time.Since(t.sink.Epoch)) }

// needsLinks says what of the cell changes links; empty: nothing does.
func (t *swarmTrial) needsLinks() string {
	if len(t.links.slow) > 0 && (t.d.SlowUp > 0 || t.d.SlowDown > 0) {
		return "disseminate.slow"
	}
	for _, f := range t.faults {
		if f.Kind != experiment.FaultCrash {
			return fmt.Sprintf("the fault %q", f.Fault)
		}
	}
	return ""
}

// ready brings the swarm to where the leechers can be released: all nodes run
// and have nothing of the content, the links are what they are to be, the seeders
// have published.
func (t *swarmTrial) ready(ctx context.Context) error {
	if what := t.needsLinks(); what != "" {
		ok, why := t.links.emulated()
		if !ok {
			return &SkipError{fmt.Sprintf("%s changes links, and they are not emulated here: %s", what, why)}
		}
	}
	err := t.eachMember(ctx, t.members, "start it anew", t.startLimit(), func(ctx context.Context, m *member) error {
		if !t.d.Fresh && !m.stale && m.dead() == nil {
			return nil
		}
		return m.restart(ctx, false)
	})
	if err != nil {
		return err
	}
	if err := t.links.apply(ctx); err != nil {
		return t.failed("shape the links", err)
	}
	err = t.eachMember(ctx, t.members, "its address", t.startLimit(), func(ctx context.Context, m *member) (err error) {
		m.address, err = m.node.Address(ctx)
		return err
	})
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := t.publish(ctx, t.seeders...); err != nil {
		return err
	}
	t.event("phase", "published", fmt.Sprintf("%s at %s", experiment.Bytes(t.size), names(t.seeders)), begun.Sub(t.sink.Epoch), time.Since(begun))
	if t.d.Cache == "cold" {
		cold, cancel := context.WithTimeout(ctx, t.startLimit())
		defer cancel()
		if t.site.DropCaches == nil {
			return t.failed("cache: cold", errors.New("the page cache cannot be emptied here"))
		}
		if err := t.site.DropCaches(cold); err != nil {
			return t.failed("cache: cold", err)
		}
	}
	return nil
}

// publish gives the content to seeders. They must agree on what it is called.
func (t *swarmTrial) publish(ctx context.Context, seeders ...*member) error {
	var mu sync.Mutex
	return t.eachMember(ctx, seeders, "publish the content", t.deadline, func(ctx context.Context, m *member) error {
		content, err := t.set.Open(0)
		if err != nil {
			return err
		}
		defer content.Close()
		ref, err := m.node.Publish(ctx, t.name, t.size, content)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if t.ref == "" {
			t.ref = ref
		}
		if ref != t.ref {
			return fmt.Errorf("it calls the content %s, and another seeder calls the same bytes %s: %w", ref, t.ref, system.ErrAnswer)
		}
		return nil
	})
}

// atOnce is how many nodes are prepared, verified or cleaned at a time: they are
// processes of one machine.
const atOnce = 4

// eachMember does something with nodes, a few at a time, each within a limit. It
// tells the first failure, after all have ended.
func (t *swarmTrial) eachMember(ctx context.Context, all []*member, what string, limit time.Duration, do func(context.Context, *member) error) error {
	errs := make([]error, len(all))
	places := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for i, m := range all {
		group.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			if ctx.Err() != nil {
				errs[i] = context.Cause(ctx)
				return
			}
			one, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			if err := do(one, m); err != nil {
				errs[i] = t.failed(fmt.Sprintf("%s: %s", m.name, what), err)
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *swarmTrial) failed(what string, err error) error {
	return fmt.Errorf("%s: %s: %w", t.site.Use.Name, what, err)
}

// startMargin is what a node may take to end and to clear its store, beside
// limits.start.
const startMargin = 15 * time.Second

func (t *swarmTrial) startLimit() time.Duration { return t.site.Limits.Start.Std() + startMargin }

// dead is how the node's daemon ended; nil: it runs.
func (n *swarmNode) dead() error {
	for _, p := range n.node.Processes() {
		select {
		case <-p.Done():
			if err := p.Err(); err != nil {
				return err
			}
			return errors.New("it ended")
		default:
		}
	}
	return nil
}

// restart starts the node's daemon again.
func (n *swarmNode) restart(ctx context.Context, keep bool) error {
	if n.restarter == nil {
		return errors.New("its daemon does not run, and cannot be started again")
	}
	n.stale = true
	if err := n.restarter.Restart(ctx, keep); err != nil {
		return err
	}
	n.stale = false
	return nil
}

// event records something that happened in the trial, at a moment since the epoch.
func (t *swarmTrial) event(kind, what, detail string, at, took time.Duration) {
	if t.sink.Event == nil {
		return
	}
	err := t.sink.Event(record.Event{At: t.sink.Epoch.Add(at), Kind: kind, What: what, Detail: detail, Took: took})
	if err != nil {
		t.fail(err)
	}
}

// fail ends the trial: it could not be executed, or not be recorded. It may be
// called with the lock or without.
func (t *swarmTrial) fail(err error) {
	t.failure.CompareAndSwap(nil, &err)
	t.wake()
}

// Close implements Runner: the deployment goes as a whole.
func (r *swarmRunner) Close(context.Context) error { return nil }
