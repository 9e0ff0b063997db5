package engine

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// machineAway is a host on a machine of a mesh that does what a test says.
type machineAway struct {
	testbed.Remote
	name   string
	addr   netip.Addr
	lost   error
	refuse func(testbed.MeshCall) error // nil: nothing
	joined int
	shaped *testbed.ShapeSpec // what its emulator was told last
}

func (m *machineAway) Name() string     { return m.name }
func (m *machineAway) Addr() netip.Addr { return m.addr }
func (m *machineAway) Lost() error      { return m.lost }

func (m *machineAway) Mesh(_ context.Context, q testbed.MeshCall) (a testbed.MeshAnswer, err error) {
	if m.refuse != nil {
		err = m.refuse(q)
	}
	if m.lost != nil {
		err = m.lost
	}
	switch {
	case err != nil:
	case q.Join != nil:
		m.joined++
	case q.Shape != nil:
		m.shaped = q.Shape
	case q.Probe:
		a.RTTs = make([]time.Duration, 16)
	}
	return a, err
}

// meshOf is a run on such machines, of which the first are the client's and other generators'; next has
// those that take the place of lost ones.
func meshOf(t *testing.T, names ...string) (r *run, at map[string]*machineAway) {
	t.Helper()
	at = map[string]*machineAway{}
	made := 0
	bed, err := testbed.New(t.Context(), testbed.Options{Dir: t.TempDir(), Plain: true, Mesh: true,
		Hosts: func(_ context.Context, _ *testbed.Testbed, name string) (testbed.Host, error) {
			made++
			at[name] = &machineAway{name: name, addr: testbed.MeshAddr(made)}
			return at[name], nil
		}})
	must(t, err)
	t.Cleanup(func() { _ = bed.Close(context.Background()) })
	r = &run{plan: &experiment.Plan{}, say: silent, bed: bed, sites: map[string]*site{}}
	for _, name := range names {
		_, err := bed.AddHost(t.Context(), name)
		must(t, err)
	}
	return r, at
}

// A shape that some machines have and others have not is not taken for the one before.
func TestShapeThatFailed(t *testing.T) {
	r, at := meshOf(t, "client", "s")
	s := &site{hosts: []testbed.Host{at["s"]}}
	r.client, r.sites["s"] = at["client"], s
	near, far := experiment.Cell{System: "s"}, experiment.Cell{System: "s"}
	far.Link.Delay = experiment.Duration(50 * time.Millisecond)
	r.link = linkState{current: shapeOf(near)}
	at["s"].refuse = func(q testbed.MeshCall) error {
		if q.Shape != nil {
			return errors.New("no answer")
		}
		return nil
	}
	if err := r.shapeLink(t.Context(), s, far); err == nil || at["client"].shaped == nil {
		t.Fatalf("%v, the client's machine has %+v", err, at["client"].shaped)
	}
	if r.link.current != "" {
		t.Errorf("the next trial would run on %+v", r.link)
	}
}

// A mesh whose emulators died, or that was never joined, is joined again, also after another
// system's machine is lost.
func TestMeshIsJoinedAgain(t *testing.T) {
	r, at := meshOf(t, "client", "a", "b")
	r.client = at["client"]
	for _, name := range []string{"a", "b"} {
		r.sites[name] = &site{hosts: []testbed.Host{at[name]}}
	}
	mended := func(why string, want int) {
		t.Helper()
		if err := r.repairLink(t.Context()); err != nil || at["a"].joined != want || r.link.current != "" {
			t.Errorf("%s: %v, joined %d times, want %d", why, err, at["a"].joined, want)
		}
	}
	down := errors.New("no answer")
	at["b"].refuse = func(q testbed.MeshCall) error { return down }
	if err := r.connect(t.Context()); err == nil {
		t.Fatal("it was joined without b")
	}
	at["b"].refuse = nil
	mended("never joined", 1)
	mended("nothing is wrong", 1)
	r.link.current = "some shape"
	at["b"].refuse = func(q testbed.MeshCall) error {
		if q.Join != nil {
			at["b"].refuse = nil
		} else if q.Stats {
			return down
		}
		return nil
	}
	mended("an emulator died", 2)
	r.link.current, r.link.spec = "some shape", r.shapeSpec(r.sites["b"], experiment.Cell{System: "b"})
	at["b"].lost = down
	mended("b is lost", 3)
	spec := r.shapeSpec(r.sites["a"], experiment.Cell{System: "a"})
	if _, there := spec.Up[at["a"].addr.String()]; !there || len(spec.Up) != 1 {
		t.Errorf("shapes %+v", spec.Up)
	}
	if err := r.bed.Shape(t.Context(), spec); err != nil {
		t.Error(err)
	}
}

// The machine that takes the place of a generator's is measured from then on, and each generator is
// as far away as its region says.
func TestGeneratorsOfAMesh(t *testing.T) {
	r, at := meshOf(t, "client", "client-2", "s")
	s := &site{hosts: []testbed.Host{at["s"]}, generators: []testbed.Host{at["client"], at["client-2"]}}
	r.client, r.generators, r.sites["s"] = at["client"], []testbed.Host{at["client-2"]}, s
	first := at["client-2"]
	first.lost = errors.New("gone")
	if moved, err := r.replaceLost(t.Context(), s); moved || err != nil {
		t.Fatal(moved, err)
	}
	now := at["client-2"]
	if now == first || s.generators[1] != testbed.Host(now) || !slices.Equal(r.generators, []testbed.Host{now}) {
		t.Errorf("generators %v and %v, want %v", s.generators, r.generators, now)
	}
	cell := experiment.Cell{System: "s", Overhead: &experiment.Overhead{Operation: "get"}}
	cell.Link = mustPlan(t, `
scenario: disseminate
systems: [bittorrent]
data: {size: 512KiB}
link: {regions: [{between: [near, far], rtt: 60ms}]}
disseminate: {nodes: 2}
`).Cells[0].Link
	spec := r.shapeSpec(s, cell)
	for _, p := range []link.Pair{{"client", "s"}, {"s", "client"}, {"client-2", "s"}, {"s", "client-2"}} {
		way := link.Pair{at[p[0]].addr.String(), at[p[1]].addr.String()}
		if got := spec.Pairs[way].Delay; got != 30*time.Millisecond {
			t.Errorf("%v: %s", p, got)
		}
	}
	if err := r.bed.Shape(t.Context(), spec); err != nil || now.shaped == nil {
		t.Error(err)
	}
}

// confined is a system that would reach beyond the network of a run.
type confined struct{ mem.System }

func (confined) Info() system.Info {
	info := mem.System{}.Info()
	info.ReachesOut = "it would call a router"
	return info
}

// What cannot run on several machines is refused before others are made: what is for one machine alone, systems that
// are started only in network namespaces where no links are emulated, load generators in namespaces that do not reach
// what runs elsewhere, and a log that only this machine has. netem of the machines' kernels emulates links when it is
// asked for.
func TestPlaceable(t *testing.T) {
	const ms = experiment.Duration(time.Millisecond)
	started := experiment.SystemUse{Name: "a", Use: "mem", Mode: string(system.Start)}
	attached := experiment.SystemUse{Name: "a", Use: "mem", Mode: string(system.Attach)}
	elsewhere := experiment.SystemUse{Name: "b", Use: "mem", Mode: string(system.Attach)}
	for _, c := range []struct {
		link     experiment.Link
		emulator string // of the testbed; empty: any
		sys      system.System
		uses     []experiment.SystemUse
		clients  int
		log      string
		refused  string // empty: it is not
	}{
		{link: experiment.Link{Emulator: "auto", Delay: ms}, emulator: link.Own},
		{link: experiment.Link{Emulator: "netem", Delay: ms}, emulator: link.NetemDiscipline},
		{link: experiment.Link{Emulator: "netem"}, emulator: link.NetemDiscipline}, // there is nothing to emulate
		{link: experiment.Link{Emulator: "netem", Delay: ms, IPv6: true}, emulator: link.NetemDiscipline,
			refused: "link.ipv6"},
		{sys: confined{}, refused: "namespaces"},
		{sys: confined{}, link: experiment.Link{Delay: ms}},
		{sys: confined{}, uses: []experiment.SystemUse{attached}},
		{sys: mem.System{}},
		{uses: []experiment.SystemUse{elsewhere, started}, link: experiment.Link{Delay: ms}, clients: 0},
		{uses: []experiment.SystemUse{elsewhere, started}, link: experiment.Link{Delay: ms}, clients: 1},
		{uses: []experiment.SystemUse{elsewhere, started}, link: experiment.Link{Delay: ms}, clients: 2,
			refused: "load generators"},
		{uses: []experiment.SystemUse{elsewhere, started}, clients: 2},
		{log: "access.log", refused: "access.log"},
		{log: "/srv/access.log"},
	} {
		plan := &experiment.Plan{Cells: []experiment.Cell{{System: "a", Link: c.link}}}
		plan.Experiment.Link, plan.Experiment.Systems = c.link, c.uses
		if c.uses == nil {
			plan.Experiment.Systems = []experiment.SystemUse{started}
		}
		if c.log != "" {
			arrivals := &experiment.Arrivals{Process: "log", Log: c.log}
			plan.Experiment.Retrieve = &experiment.Retrieve{Arrivals: arrivals}
		}
		var systems []system.System
		if c.sys != nil {
			systems = append(systems, c.sys)
		}
		problems := Blocking(Placeable(plan, systems, c.clients))
		if len(problems) != min(len(c.refused), 1) ||
			len(problems) > 0 && !strings.Contains(problems[0].What, c.refused) {
			t.Errorf("%+v: %+v", c, problems)
		}
		if c.emulator == "" {
			continue
		}
		if ByKernel(plan) != (c.link.Emulator == "netem" && c.link.Delay > 0) {
			t.Errorf("%+v: by the kernel: %t", c, ByKernel(plan))
		}
		got := testbedOptions(Config{Plan: plan, Machines: 2})
		if got.Emulate != c.emulator || got.Mesh != (c.link.Delay > 0) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// ip is the address of the host with a number.
func ip(n int) string { return testbed.MeshAddr(n).String() }

// numbered is the host with that number as its name.
func numbered(n int) testbed.Host {
	return &machineAway{name: strconv.Itoa(n), addr: testbed.MeshAddr(n)}
}

// Storage nodes send at one rate and receive at another, and a round trip between two
// regions is that of the pair, also while a fault cuts hosts off.
func TestAsymmetricLinksAndRegions(t *testing.T) {
	const ms = time.Millisecond
	plan := mustPlan(t, `
scenario: disseminate
systems: [bittorrent]
data: {size: 512KiB}
link: {rate: 40Mbit, up: 10Mbit, jitter: 4ms, loss: 1%, queue: 100kB, regions: [{between: [near, far], rtt: 60ms}, {between: near, rtt: 2ms}]}
disseminate: {nodes: 3}
`)
	hosts := []testbed.Host{numbered(1), numbered(2), numbered(3)}
	r := &run{plan: plan, client: numbered(9), sites: map[string]*site{"s": {hosts: hosts[:1]}}}
	spec := r.shapeSpec(&site{hosts: hosts}, plan.Cells[0])
	up, down := link.Params{Rate: 10e6, Queue: 100e3}, link.Params{Rate: 40e6, Queue: 100e3}
	if spec.Up[ip(2)] != up || spec.Down[ip(2)] != down || !spec.Changes || len(spec.Pairs) != 6 {
		t.Errorf("shapes %+v", spec)
	}
	far, near := link.Params{Delay: 30 * ms, Jitter: 4 * ms, Loss: 0.01}, link.Params{Delay: ms, Jitter: ms, Loss: 0.01}
	if spec.Pairs[link.Pair{ip(1), ip(2)}] != far || spec.Pairs[link.Pair{ip(2), ip(1)}] != far ||
		spec.Pairs[link.Pair{ip(3), ip(1)}] != near {
		t.Errorf("pairs %+v", spec.Pairs)
	}
	cut := changed(spec, hosts, scenario.NetworkChange{Apart: []int{1}})
	far.Loss = 1
	if cut.Pairs[link.Pair{ip(3), ip(2)}] != far || cut.Pairs[link.Pair{ip(1), ip(3)}] != near ||
		spec.Pairs[link.Pair{ip(2), ip(3)}].Loss != 0.01 {
		t.Errorf("cut off: %+v, before: %+v", cut.Pairs, spec.Pairs)
	}

	// One system: the client is in the first region, the system in the second.
	cell := experiment.Cell{System: "s", Link: plan.Cells[0].Link, Overhead: &experiment.Overhead{Operation: "put"}}
	spec = r.shapeSpec(r.sites["s"], cell)
	far.Loss = 0.01
	if spec.Up[ip(1)] != up || spec.Down[ip(1)] != down || len(spec.Up) != 1 || len(spec.Pairs) != 2 ||
		spec.Pairs[link.Pair{ip(9), ip(1)}] != far {
		t.Errorf("a client and a system: %+v", spec)
	}
	if got := r.namesOfPaths(r.sites["s"], cell, false); got != "9→1" {
		t.Errorf("what a put needs is measured: %s", got)
	}
	cell.Overhead = &experiment.Overhead{Operation: "get"}
	if got := r.namesOfPaths(r.sites["s"], cell, false); got != "1→9" {
		t.Errorf("what a get needs is measured: %s", got)
	}
}

func (r *run) namesOfPaths(s *site, cell experiment.Cell, real bool) string {
	var names []string
	for _, p := range r.measuredPaths(s, cell, 1, real) {
		names = append(names, p[0].Name()+"→"+p[1].Name())
	}
	return strings.Join(names, " ")
}

// Of real links each may be another: the direction of the bytes is measured, of nodes the ring.
func TestPathsOfRealLinks(t *testing.T) {
	r := &run{plan: &experiment.Plan{}, client: named{name: "client"}}
	s := &site{hosts: []testbed.Host{named{name: "a"}, named{name: "b"}, named{name: "c"}, named{name: "spare"}}}
	for want, cell := range map[string]experiment.Cell{
		"client→a":    {Overhead: &experiment.Overhead{Operation: "put"}},
		"a→client":    {Overhead: &experiment.Overhead{Operation: "get"}},
		"a→b b→c c→a": {Disseminate: &experiment.Disseminate{Nodes: 3}},
		"b→a c→a":     {Sync: &experiment.Sync{Peers: 2}},
	} {
		if got := r.namesOfPaths(s, cell, true); got != want {
			t.Errorf("measured: %s, want %s", got, want)
		}
	}
}
