package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
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
	node      system.Member
	restarter system.Restarter // nil: it cannot be started again
	stale     bool             // it has to be started anew before it is used again
}

// swarmTrial is one trial under way.
type swarmTrial struct {
	*swarmRunner
	*course
	cell   experiment.Cell
	d      *experiment.Disseminate
	set    workload.Set // of one object
	size   int64
	title  string // of the content
	ref    system.Ref
	faults []*swarmFault

	members  []*member // by place
	seeders  []*member
	leechers []*member // in the order in which they come

	// Under the lock of the course.
	verified int64 // bytes of all leechers together
	most     int64 // the most that it has been
	done     int   // leechers that have all
	stalls   int
	affected []*recovery
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
	cpu, err := t.timed(ctx, t.spread)
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
	who := chooseRoles(d, r.site.Seed, seed, sink.Number)
	rates := map[int]Rates{}
	if slowly := (Rates{Up: float64(d.SlowUp), Down: float64(d.SlowDown)}); slowly != (Rates{}) {
		for _, i := range who.slow {
			rates[i] = slowly
		}
	}
	t := &swarmTrial{swarmRunner: r, course: newCourse(r.site, sink, cell.PollEvery(), rates), cell: cell, d: d}
	data := cell.Data
	data.Objects = 1
	var err error
	if t.set, err = DataSet(data, mix(seed, "content", 0), r.site.Base); err != nil {
		return fail(err)
	}
	t.size = t.set.Object(0).Size
	t.title = fmt.Sprintf("plimsoll-%016x", mix(seed, "name", 0))
	for _, n := range r.nodes[:d.Nodes] {
		t.members = append(t.members, &member{swarmNode: n})
	}
	for _, i := range who.seeders {
		t.seeders = append(t.seeders, t.members[i])
	}
	offsets := arrivals(d.Join, len(who.leechers), mix(seed, "arrivals", 0))
	for k, i := range who.leechers {
		t.members[i].leecher = &leecher{offset: offsets[k]}
		t.leechers = append(t.leechers, t.members[i])
	}
	for i, f := range d.Faults {
		places := slices.Sorted(slices.Values(who.victims[i]))
		s := &swarmFault{courseFault: newCourseFault(f, places, r.names())}
		for _, v := range places {
			s.victims = append(s.victims, t.members[v])
		}
		t.faults = append(t.faults, s)
	}
	return t, nil
}

// ready brings the swarm to where the leechers can be released: all nodes run
// and have nothing of the content, the links are what they are to be, the seeders
// have published.
func (t *swarmTrial) ready(ctx context.Context) error {
	slow := ""
	if len(t.links.rates) > 0 {
		slow = "disseminate.slow"
	}
	faults := make([]experiment.Fault, len(t.faults))
	for i, f := range t.faults {
		faults[i] = f.Fault
	}
	if err := t.needsLinks(slow, faults); err != nil {
		return err
	}
	err := t.eachMember(ctx, t.members, "start it anew", t.starting, func(ctx context.Context, m *member) error {
		if !t.d.Fresh && !m.stale && ended(m.node.Processes()) == nil {
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
	err = t.eachMember(ctx, t.members, "its address", t.starting, func(ctx context.Context, m *member) (err error) {
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
		cold, cancel := context.WithTimeout(ctx, t.starting)
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
		ref, err := m.node.Publish(ctx, t.title, t.size, content)
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

// eachMember does something with nodes, a few at a time, each within a limit. It
// tells the first failure, after all have ended.
func (t *swarmTrial) eachMember(ctx context.Context, all []*member, what string, limit time.Duration, do func(context.Context, *member) error) error {
	for i, err := range eachNode(ctx, all, limit, do) {
		if err != nil {
			return t.failed(fmt.Sprintf("%s: %s", all[i].name, what), err)
		}
	}
	return nil
}

// names are those of all nodes of the deployment.
func (r *swarmRunner) names() []string {
	all := make([]string, len(r.nodes))
	for i, n := range r.nodes {
		all[i] = n.name
	}
	return all
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

// Close implements Runner: the deployment goes as a whole.
func (r *swarmRunner) Close(context.Context) error { return nil }
