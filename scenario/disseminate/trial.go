package disseminate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/workload"
)

// runner is one prepared swarm. Its nodes run through all trials.
type runner struct {
	site  scenario.Site
	nodes []*nodes.Node
}

// trial is one running trial.
type trial struct {
	*runner
	*nodes.Trial
	d         *experiment.Disseminate
	set       workload.Set // of one object
	title     string       // of the content
	ref       system.Ref
	seeders   []*nodes.Node
	addresses []string              // of the nodes, by place
	checked   map[*nodes.Node]error // results of verified leechers; nil: content is right; protected by Mu
}

// Trial implements Runner.
func (r *runner) Trial(ctx context.Context, cell experiment.Cell, seed uint64,
	sink scenario.Sink) (scenario.Load, error) {
	t, err := r.trial(ctx, cell, seed, sink)
	if err != nil {
		return scenario.Load{}, err
	}
	defer t.clean(ctx)
	if err := t.ready(ctx); err != nil {
		return scenario.Load{}, err
	}
	cpu, err := t.Run(ctx)
	if err == nil {
		err = t.verify(ctx)
	}
	return t.loaded(cpu), errors.Join(err, t.Record(t.ops()), ctx.Err())
}

// trial sets up a trial: the roles of nodes, the times of releases, and the faults.
func (r *runner) trial(ctx context.Context, cell experiment.Cell, seed uint64, sink scenario.Sink) (*trial, error) {
	d := cell.Disseminate
	who := chooseRoles(d, r.site.Seed, seed, sink.Number)
	rates := map[int]scenario.Rates{}
	for _, i := range who.slow {
		rates[i] = scenario.Rates{Up: float64(d.SlowUp), Down: float64(d.SlowDown)}
	}
	t := &trial{runner: r, d: d, addresses: make([]string, d.Nodes), checked: map[*nodes.Node]error{}}
	t.Trial = nodes.New(r.site, sink, cell.PollEvery(), rates, t)
	data := cell.Data
	data.Objects = 1
	var err error
	t.set, err = scenario.DataSet(ctx, data, scenario.MixSeed(seed, "content", 0), r.site.Base)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.site.Use.Name, err)
	}
	t.title = fmt.Sprintf("plimsoll-%016x", scenario.MixSeed(seed, "name", 0))
	t.Goal = t.set.Object(0).Size
	t.Bytes = t.Goal * int64(len(who.leechers))
	t.Add(r.nodes[:d.Nodes]...)
	t.seeders = nodes.Pick(t.Nodes, who.seeders)
	offsets := arrivals(d.Join, len(who.leechers), scenario.MixSeed(seed, "arrivals", 0))
	for k, i := range who.leechers {
		t.Time(t.Nodes[i], offsets[k])
	}
	t.AddFaults(d.Faults, who.victims)
	t.Done = func(n *nodes.Node) {
		if d.Stay != experiment.Forever {
			t.Go(func() { t.leave(n, n.Ended+d.Stay.For()) })
		}
	}
	return t, nil
}

// ready prepares the swarm for the release of the leechers: all nodes run without the content,
// the links are shaped, and the seeders have published.
func (t *trial) ready(ctx context.Context) error {
	if err := t.NeedLinks("disseminate.slow"); err != nil {
		return err
	}
	err := t.Each(ctx, t.Nodes, "start it, and its address", t.Starting,
		func(ctx context.Context, n *nodes.Node) (err error) {
			if t.d.Fresh || n.Stale || n.Gone() {
				err = restart(ctx, n, false)
			}
			if err == nil {
				t.addresses[n.Place], err = member(n).Address(ctx)
			}
			return err
		})
	if err != nil {
		return err
	}
	if err := t.ApplyRates(ctx); err != nil {
		return err
	}
	begun := time.Now()
	if err := t.publish(ctx, t.seeders...); err != nil {
		return err
	}
	t.Event("phase", "published", fmt.Sprintf("%s at %s", experiment.Bytes(t.Goal),
		strings.Join(nodes.NamesOf(t.seeders), ", ")), begun.Sub(t.Sink.Epoch), time.Since(begun))
	return nil
}

// publish gives the content to seeders, which must agree on its ref.
func (t *trial) publish(ctx context.Context, seeders ...*nodes.Node) error {
	var mu sync.Mutex
	return t.Each(ctx, seeders, "publish the content", t.site.Limits.Deadline.Std(),
		func(ctx context.Context, n *nodes.Node) error {
			content, err := t.set.Open(0)
			if err != nil {
				return err
			}
			defer content.Close()
			ref, err := member(n).Publish(ctx, t.title, t.Goal, content)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if t.ref == "" {
				t.ref = ref
			}
			if ref != t.ref {
				return fmt.Errorf("it calls the content %s, and another seeder calls the same bytes %s: %w", ref, t.ref,
					system.ErrAnswer)
			}
			return nil
		})
}

func member(n *nodes.Node) system.Member { return n.System.(system.Member) }

// restart restarts the node's daemon, with its data if keep is set.
func restart(ctx context.Context, n *nodes.Node, keep bool) error {
	r, ok := n.System.(system.Restarter)
	if !ok {
		return errors.New("its daemon does not run, and cannot be started again")
	}
	err := r.Restart(ctx, keep)
	n.Stale = err != nil
	return err
}

// Start implements Actions: it gives a leecher its task.
func (t *trial) Start(ctx context.Context, n *nodes.Node) error {
	return member(n).Fetch(ctx, t.ref, t.peers(n))
}

// peers returns the addresses that a leecher gets: those of all seeders and of all other
// leechers that have been released, so that everyone knows everyone, as with a tracker. Earlier
// leechers learn of later ones when these connect. Seeders come first, rotated by the leecher's
// position, so that leechers that use only the first address are spread over the seeders.
func (t *trial) peers(n *nodes.Node) []string {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	at, now := slices.Index(t.Timed, n), t.Now()
	var from []string
	for i := range t.seeders {
		from = append(from, t.addresses[t.seeders[(at+i)%len(t.seeders)].Place])
	}
	for i := range t.Timed {
		if other := t.Timed[(at+i)%len(t.Timed)]; other != n && other.Released <= now && !other.Left {
			from = append(from, t.addresses[other.Place])
		}
	}
	return from
}

// Poll implements Actions.
func (t *trial) Poll(ctx context.Context, n *nodes.Node) (nodes.Answer, error) {
	f, err := member(n).Progress(ctx, t.ref)
	if f.Complete && f.Verified < 0 {
		f.Verified = t.Goal
	}
	f.Verified = max(0, f.Verified)
	return nodes.Answer{
		Mark: record.Mark{Verified: f.Verified, Written: -1, Received: f.Received, Sent: f.Sent, Peers: f.Peers,
			Complete: f.Complete, Trouble: f.Trouble},
		All: f.Complete || f.Verified >= t.Goal,
	}, err
}

// Kill implements Actions.
func (t *trial) Kill(ctx context.Context, n *nodes.Node) error {
	return n.System.(system.Restarter).Kill(ctx)
}

// Restart implements Actions. A seeder that kept its data publishes it again, as an operator
// would do.
func (t *trial) Restart(ctx context.Context, n *nodes.Node, empty bool) error {
	err := nodes.Within(ctx, t.Starting, func(ctx context.Context) error { return restart(ctx, n, !empty) })
	if err == nil && !empty && slices.Contains(t.seeders, n) {
		err = t.publish(ctx, n)
	}
	return err
}

// ops returns one operation for each leecher, until all was verified.
func (t *trial) ops() (all []record.Op) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	for _, n := range t.Timed {
		op := t.Op(n, record.OpFetch)
		op.Length, op.Bytes = t.Goal, min(n.Verified, t.Goal)
		if n.All > 0 {
			op.LastByte, op.Bytes = scenario.Nanos(n.All), t.Goal
			op.Outcome, op.Class = t.verdict(n)
		}
		all = append(all, op)
	}
	return all
}

// loaded returns the facts about the load. cpu is the CPU time of this process during the load.
func (t *trial) loaded(cpu float64) scenario.Load {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	if t.d.Stay != experiment.Forever {
		t.Note("leechers that leave (disseminate.stay: %s) are verified when they do: the CPU that it takes is in "+
			"the load", t.d.Stay)
	}
	names := nodes.NamesOf(t.nodes)
	load := t.Loaded(cpu, names)
	none := math.NaN()
	seeder := slices.Repeat([]float64{none}, len(t.Nodes)) // nodes beyond them take no part
	payload, called, gap := slices.Clone(seeder), slices.Clone(seeder), slices.Clone(seeder)
	for _, n := range t.seeders {
		seeder[n.Place] = 1
	}
	for _, n := range t.Timed {
		seeder[n.Place], gap[n.Place] = 0, n.Gap.Seconds()
		if !n.Killed() && n.Last.Received > 0 {
			payload[n.Place] = float64(n.Last.Received)
		}
		if n.Called > 0 {
			called[n.Place] = (n.Called - n.Released).Seconds()
		}
	}
	load.Details = slices.Concat(load.Details, nodes.Details(record.DetailSeeder, names, seeder),
		nodes.Details(record.DetailPayload, names, payload), nodes.Details(record.DetailCalled, names, called),
		nodes.Details(record.DetailGap, names, gap))
	return load
}

// verify compares the data on the disks of leechers that report to have all with the content,
// after the load. A leecher that was killed when it had all is restarted for it.
func (t *trial) verify(ctx context.Context) error {
	whole := slices.DeleteFunc(slices.Clone(t.Timed), func(n *nodes.Node) bool {
		_, done := t.checked[n]
		return done || n.All == 0
	})
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

// roles holds the roles of a trial's nodes, by place. The seeds that choose them are the same
// for all systems.
type roles struct {
	seeders  []int
	leechers []int // in the order of their releases
	slow     []int
	victims  [][]int // of each fault
}

// chooseRoles draws the roles of a trial. Seeders and slow leechers depend only on the
// experiment's seed and the seeder set. They are the same for all sizes of content, so that
// trials that differ only in size are pairs. The order of the leechers and the victims depend on
// the trial's seed.
func chooseRoles(d *experiment.Disseminate, seed, trial uint64, number int) roles {
	set := number
	if k := d.SeederSets; k > 0 {
		set = ((number % k) + k) % k // numbers of warm-up trials are negative
	}
	all := nodes.Shuffled(d.Nodes, scenario.MixSeed(seed, "seeders", int64(set)))
	r := roles{seeders: all[:d.Seeders]}
	rest := all[d.Seeders:]
	r.slow = nodes.Draw(rest, d.Slow.Of(len(rest)), scenario.MixSeed(seed, "slow", int64(set)))
	r.leechers = nodes.Draw(rest, len(rest), scenario.MixSeed(trial, "order", 0))
	r.victims = nodes.Victims(d.Faults, trial, map[string][]int{"seeders": r.seeders, "leechers": rest, "nodes": all})
	return r
}

// arrivals returns the offsets of n leechers from the release, in their order.
func arrivals(j experiment.Join, n int, seed uint64) []time.Duration {
	at := make([]time.Duration, n)
	switch {
	case j.Wave > 0:
		for i := range at {
			at[i] = time.Duration(i/j.Wave) * j.Every.Std()
		}
	case j.Poisson > 0:
		// The first arrives at once, since nothing happens before it.
		p := workload.Poisson{PerSecond: float64(j.Poisson), Seed: seed}
		for i := 1; i < n; i++ {
			gap, _ := p.Pace(at[i-1], uint64(i))
			at[i] = at[i-1] + gap
		}
	}
	return at
}
