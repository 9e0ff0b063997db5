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

// health: a node which accepts and answers nothing is not healthy.
func (k *objects) health() {
	h, ok := k.n.(system.Healther)
	if !ok {
		k.Skip("the system has no health probe")
	}
	must(k.T, "health of a healthy node", h.Health(Context(k.T)))
	if len(k.n.Processes()) == 0 {
		return
	}
	defer freeze(k.T, k.n)()
	ctx, cancel := context.WithTimeout(Context(k.T), time.Second)
	defer cancel()
	fails(k.T, "health of a stopped node", h.Health(ctx))
}

// hang asks nodes that do not answer: calls end at the context's deadline, and
// the nodes serve again once they go on.
func (k *objects) hang() {
	if len(processes(k.c.Nodes()...)) == 0 {
		k.Skip("no processes that could be stopped")
	}
	data := Bytes("hang", 5000)
	ref := k.put("hang", data)
	ways := ask(k.n)
	if !k.Truths.PutPassesServer {
		ways["put"] = func(ctx context.Context, _ system.Ref) error {
			_, err := k.n.Put(ctx, "hang-put", mib, Content("hang-put", mib))
			return err
		}
	}
	thaw := freeze(k.T, k.c.Nodes()...)
	var all sync.WaitGroup
	for how, do := range ways {
		all.Go(func() {
			failsSoon(k.T, how+" of a system that does not answer", func() error {
				ctx, cancel := context.WithTimeout(Context(k.T), time.Second)
				defer cancel()
				return do(ctx, ref)
			}, context.DeadlineExceeded)
		})
	}
	all.Wait()
	thaw()
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(Context(k.T), soon)
		err := k.n.Get(ctx, ref, io.Discard)
		cancel()
		if err == nil {
			break
		}
	}
	k.want(ref, data)
}

func (k *objects) stop() {
	if k.Attach != nil {
		k.Skip("nothing of ours to stop")
	}
	ref := k.put("stop", Bytes("stop", 1000))
	for range 2 {
		must(k.T, "stop", k.c.Stop(Context(k.T)))
	}
	wantEnded(k.T, processes(k.c.Nodes()...))
	wantGone(k.T, k.n, ref)
}

// wantGone checks that a node whose server is gone says so, soon.
func wantGone(t *testing.T, n system.Getter, ref system.Ref) {
	t.Helper()
	if h, ok := n.(system.Healther); ok {
		failsSoon(t, "health without a server", func() error { return h.Health(Context(t)) })
	}
	for how, get := range ask(n) {
		failsSoon(t, how+" without a server", func() error {
			err := get(Context(t), ref)
			if errors.Is(err, system.ErrNotFound) {
				t.Errorf("%s without a server: %v", how, err)
			}
			return err
		})
	}
}

// midway is larger than what buffers on the way could hold.
const midway = 32 * mib

func (s Suite) killedInPut(t *testing.T) {
	if s.Truths.PutPassesServer {
		t.Skip("Put does not need the server")
	}
	k := s.start(t)
	failsSoon(t, "a put during which the system was killed", func() error {
		killing := &once{do: func() { kill(t, k.c.Nodes()...) }}
		_, err := k.n.Put(Context(t), "midway", midway, io.MultiReader(Content("midway", midway/2), killing,
			Content("midway-2", midway/2)))
		return err
	})
}

func (s Suite) killedInGet(t *testing.T) {
	k := s.start(t)
	ref := k.seeded("midway", midway)
	w := &once{do: func() { kill(t, k.c.Nodes()...) }}
	failsSoon(t, "a get during which the system was killed", func() error { return k.n.Get(Context(t), ref, w) })
	if !w.done {
		t.Error("no byte came before the system was killed")
	}
	wantGone(t, k.n, ref)
}

// revive kills all processes of a deployment at once, as the end of a session by
// kill -9 does, and brings it up again on its directory, twice: all objects are
// there, under the same refs, and more can be stored and removed.
func (s Suite) revive(t *testing.T) {
	if s.System.Info().Kept == "" {
		t.Skip("a deployment cannot be brought up again")
	}
	d := s.deployment(t)
	_, err := system.Revive(Context(t), s.System, d)
	fails(t, "revive an empty directory", err)
	c, err := system.Begin(Context(t), s.System, system.Start, d)
	must(t, "start", err)
	k := &objects{t, s, c, c.Nodes()[0].(system.Store), d.Client}
	sizes := map[system.Ref]int64{}
	put := func(name string, size int64) { sizes[k.put("run/"+name, Bytes(fmt.Sprint(size), size))] = size }
	for _, size := range []int64{1, 56, 3000, 2*mib + 1} {
		put(fmt.Sprint("revive-", size), size)
	}
	for round := range 2 {
		kill(t, k.c.Nodes()...)
		if err := k.c.Stop(Context(t)); err != nil {
			t.Logf("stop of what was killed: %v", err) // what it says is not judged here
		}
		k.c, err = system.Revive(Context(t), s.System, d)
		must(t, "revive", err)
		k.n = k.c.Nodes()[0].(system.Store)
		listed := listing(t, k.n)
		for ref, size := range sizes {
			k.want(ref, Bytes(fmt.Sprint(size), size))
			if listed != nil && (listed[ref].Size != size || len(listed) != len(sizes)) {
				t.Errorf("%s of %d bytes is listed as %+v, one of %d", ref, size, listed[ref], len(listed))
			}
		}
		put(fmt.Sprint("more-", round), 5000+int64(round))
	}
	if del, ok := k.n.(system.Deleter); ok {
		for ref := range sizes {
			must(t, "delete what an earlier session put", del.Delete(Context(t), ref))
			fails(t, "get after delete", k.n.Get(Context(t), ref, io.Discard), system.ErrNotFound)
		}
	}
	must(t, "stop", k.c.Stop(Context(t)))
}

func (s Suite) portInUse(t *testing.T) { wantPortInUse(t, s.System, s.deployment(t)) }

// wantPortInUse: when the port of the last node is taken the start fails, says of
// which host, and leaves no node behind on the others.
func wantPortInUse(t *testing.T, s system.System, d system.Deployment) {
	t.Helper()
	if !slices.ContainsFunc(s.Info().Options, func(o system.Option) bool { return o.Name == "port" }) {
		t.Skip("the system has no option port")
	}
	last := d.Hosts[len(d.Hosts)-1]
	port := takePort(t, last, d.Hosts[:len(d.Hosts)-1])
	taken := system.JoinPort(last, port)
	if d.Options == nil {
		d.Options = system.Options{}
	}
	d.Options["port"] = strconv.Itoa(port)
	c, err := system.Begin(Context(t), s, system.Start, d)
	if err == nil {
		StopAtEnd(t, c)
		t.Fatalf("started, though %s was taken", taken)
	}
	for _, want := range []string{s.Info().Name + ": ", "port in use", taken, last.Name()} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("start on a port in use: %v; want %q in it", err, want)
		}
	}
	if first := d.Hosts[0]; first != last { // its node had its port: nothing holds it any more
		_, err := first.Port(Context(t), port)
		must(t, "a node is left behind by a start that failed", err)
	}
}

// takePort takes a port of a host that is free on the others: plain hosts share the
// machine's loopback, where other tests' nodes have ports too.
func takePort(t *testing.T, h testbed.Host, others []testbed.Host) int {
	t.Helper()
	for range 20 {
		at, stop, err := h.Respond(Context(t))
		must(t, "listen", err)
		port := int(at.Port())
		taken := func(o testbed.Host) bool {
			_, err := o.Port(Context(t), port)
			return err != nil
		}
		if !slices.ContainsFunc(others, taken) {
			t.Cleanup(stop)
			return port
		}
		stop()
	}
	t.Fatal("no port is free on all the other hosts")
	return 0
}
