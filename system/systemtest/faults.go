package systemtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// frozen is how long calls wait for a node that does not answer.
const frozen = 300 * time.Millisecond

// health checks that a node that accepts connections without answering is not healthy.
func (k *objects) health() {
	h, ok := k.n.(system.Healther)
	if !ok {
		k.Skip("the system has no health probe")
	}
	k.must("health of a healthy node", h.Health(k.ctx()))
	if len(k.n.Processes()) == 0 {
		return
	}
	defer k.freeze(k.n)()
	k.fails("health of a stopped node", h.Health(k.limited(frozen)))
}

// hang calls nodes that do not answer: calls must end at the context's deadline, and the nodes must
// serve again once they continue.
func (k *objects) hang() {
	if len(processes(k.c.Nodes()...)) == 0 {
		k.Skip("no processes that could be stopped")
	}
	o := k.put("hang", 5000)
	ways := ask(k.n)
	if !k.Truths.PutPassesServer {
		ways["put"] = func(ctx context.Context, _ system.Ref) error {
			return errorOf(k.n.Put(ctx, "hang-put", mib, Content("hang-put", mib)))
		}
	}
	thaw := k.freeze(k.c.Nodes()...)
	var all sync.WaitGroup
	for how, do := range ways {
		all.Go(func() {
			k.failsSoon(how+" of a system that does not answer", func() error {
				return do(k.limited(frozen), o.ref)
			}, context.DeadlineExceeded)
		})
	}
	all.Wait()
	thaw()
	await(soon, 100*time.Millisecond, func() bool { return k.n.Get(k.limited(soon), o.ref, io.Discard) == nil })
	k.want(o)
}

func (k *objects) stop() {
	if k.Attach != nil {
		k.Skip("nothing of ours to stop")
	}
	ref := k.put("stop", 1000).ref
	k.stopTwice(k.c)
	k.wantGone(k.n, ref)
}

// wantGone checks that a node without its server reports that soon.
func (k kit) wantGone(n system.Getter, ref system.Ref) {
	if h, ok := n.(system.Healther); ok {
		k.failsSoon("health without a server", func() error { return h.Health(k.ctx()) })
	}
	for how, get := range ask(n) {
		k.failsSoon(how+" without a server", func() error {
			err := get(k.ctx(), ref)
			if errors.Is(err, system.ErrNotFound) {
				k.Errorf("%s without a server: %v", how, err)
			}
			return err
		})
	}
}

// midway is larger than all buffers on the way.
const midway = 32 * mib

func (s Suite) killedInPut(t *testing.T) {
	if s.Truths.PutPassesServer {
		t.Skip("Put does not need the server")
	}
	k := s.start(t)
	k.failsSoon("a put during which the system was killed", func() error {
		killing := &hook{do: func() { k.kill(k.c.Nodes()...) }}
		return errorOf(k.n.Put(k.ctx(), "midway", midway, io.MultiReader(Content("midway", midway/2), killing,
			Content("midway-2", midway/2))))
	})
}

func (s Suite) killedInGet(t *testing.T) {
	k := s.start(t)
	ref := k.seeded("midway", midway)
	killed := false
	killing := sync.OnceFunc(func() {
		k.kill(k.c.Nodes()...)
		killed = true
	})
	k.failsSoon("a get during which the system was killed", func() error {
		return k.n.Get(k.ctx(), ref, &hook{do: killing})
	})
	if !killed {
		t.Error("no byte came before the system was killed")
	}
	k.wantGone(k.n, ref)
}

// revive kills all processes of a deployment at once, like a kill -9 of the session, and starts it
// again on its directory, twice: all objects must exist under the same refs, and more can be stored
// and removed.
func (s Suite) revive(t *testing.T) {
	if s.System.Info().Kept == "" {
		t.Skip("a deployment cannot be brought up again")
	}
	d := s.deployment(t)
	_, err := system.Revive(Context(t), s.System, d)
	kit{t}.fails("revive an empty directory", err)
	c, err := system.Begin(Context(t), s.System, system.Start, d)
	kit{t}.must("start", err)
	k := &objects{kit{t}, s, c, c.Nodes()[0].(system.Store), d.Client}
	var all []object
	for _, size := range []int64{1, 56, 3000, 2*mib + 1} {
		all = append(all, k.put(fmt.Sprint("run/revive-", size), size))
	}
	for round := range 2 {
		k.kill(k.c.Nodes()...)
		if err := k.c.Stop(k.ctx()); err != nil {
			t.Logf("stop of what was killed: %v", err) // the error is not judged here
		}
		k.c, err = system.Revive(k.ctx(), s.System, d)
		k.must("revive", err)
		k.n = k.c.Nodes()[0].(system.Store)
		k.want(all...)
		listed := k.listing(k.n)
		for _, o := range all {
			if listed != nil && (listed[o.ref].Size != int64(len(o.data)) || len(listed) != len(all)) {
				t.Errorf("%s of %d bytes is listed as %+v, one of %d", o.ref, len(o.data), listed[o.ref], len(listed))
			}
		}
		all = append(all, k.put(fmt.Sprint("run/more-", round), 5000+int64(round)))
	}
	if del, ok := k.n.(system.Deleter); ok {
		for _, o := range all {
			k.must("delete what an earlier session put", del.Delete(k.ctx(), o.ref))
			k.fails("get after delete", k.n.Get(k.ctx(), o.ref, io.Discard), system.ErrNotFound)
		}
	}
	k.must("stop", k.c.Stop(k.ctx()))
}

// wantPortInUse checks that a start fails if the port of the last node is taken, that the error
// names the host, and that no node is left running on the other hosts.
func (k kit) wantPortInUse(s system.System, d system.Deployment) {
	if !slices.ContainsFunc(s.Info().Options, func(o system.Option) bool { return o.Name == "port" }) {
		k.Skip("the system has no option port")
	}
	last := d.Hosts[len(d.Hosts)-1]
	port := k.takePort(last, d.Hosts[:len(d.Hosts)-1])
	taken := system.JoinPort(last, port)
	d.Options["port"] = strconv.Itoa(port)
	_, err := begin(k.ctx(), k.T, s, system.Start, d)
	if err == nil {
		k.Fatalf("started, though %s was taken", taken)
	}
	for _, want := range []string{s.Info().Name + ": ", "port in use", taken, last.Name()} {
		if !strings.Contains(err.Error(), want) {
			k.Errorf("start on a port in use: %v; want %q in it", err, want)
		}
	}
	if first := d.Hosts[0]; first != last { // its node had started: it must have released the port
		k.must("a node is left behind by a start that failed", errorOf(first.Port(k.ctx(), port)))
	}
}

// takePort occupies a port of a host that is free on the others: plain hosts share the machine's
// loopback, where nodes of other tests have ports too.
func (k kit) takePort(h testbed.Host, others []testbed.Host) int {
	for range 20 {
		at, stop, err := h.Respond(k.ctx())
		k.must("listen", err)
		port := int(at.Port())
		taken := func(o testbed.Host) bool { return errorOf(o.Port(k.ctx(), port)) != nil }
		if !slices.ContainsFunc(others, taken) {
			k.Cleanup(stop)
			return port
		}
		stop()
	}
	k.Fatalf("no port is free on all the other hosts")
	return 0
}
