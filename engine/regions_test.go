package engine

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/overhead"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// named is a host of which nothing but the name is asked.
type named struct {
	testbed.Host
	name string
}

func (n named) Name() string { return n.name }

// Storage nodes send at one rate and receive at another, and a round trip between two
// regions is that of the pair, also while a fault cuts hosts off.
func TestAsymmetricLinksAndRegions(t *testing.T) {
	const ms = time.Millisecond
	plan := swarmPlan(t, `
scenario: disseminate
systems: [bittorrent]
data: {size: 512KiB}
link: {rate: 40Mbit, up: 10Mbit, jitter: 4ms, loss: 1%, queue: 100kB, regions: [{between: [near, far], rtt: 60ms}, {between: near, rtt: 2ms}]}
disseminate: {nodes: 3}
`)
	hosts := []testbed.Host{named{name: "a"}, named{name: "b"}, named{name: "c"}}
	r := &run{plan: plan, client: named{name: "client"}, sites: map[string]*site{"s": {hosts: hosts[:1]}}}
	spec := r.shapeSpec(&site{hosts: hosts}, plan.Cells[0])
	up, down := link.Params{Rate: 10e6, Queue: 100e3}, link.Params{Rate: 40e6, Queue: 100e3}
	if spec.Up["b"] != up || spec.Down["b"] != down || !spec.Changes || len(spec.Pairs) != 6 {
		t.Errorf("shapes %+v", spec)
	}
	far, near := link.Params{Delay: 30 * ms, Jitter: 4 * ms, Loss: 0.01}, link.Params{Delay: ms, Jitter: ms, Loss: 0.01}
	if spec.Pairs[link.Pair{"a", "b"}] != far || spec.Pairs[link.Pair{"b", "a"}] != far ||
		spec.Pairs[link.Pair{"c", "a"}] != near {
		t.Errorf("pairs %+v", spec.Pairs)
	}
	cut := changed(spec, hosts, scenario.NetworkChange{Apart: []int{1}})
	far.Loss = 1
	if cut.Pairs[link.Pair{"c", "b"}] != far || cut.Pairs[link.Pair{"a", "c"}] != near ||
		spec.Pairs[link.Pair{"b", "c"}].Loss != 0.01 {
		t.Errorf("cut off: %+v, before: %+v", cut.Pairs, spec.Pairs)
	}

	// One system: the client is in the first region, the system in the second.
	cell := experiment.Cell{System: "s", Link: plan.Cells[0].Link, Overhead: &experiment.Overhead{Operation: "put"}}
	spec = r.shapeSpec(r.sites["s"], cell)
	far.Loss = 0.01
	if spec.Up["a"] != up || spec.Down["a"] != down || len(spec.Up) != 1 || len(spec.Pairs) != 2 ||
		spec.Pairs[link.Pair{"client", "a"}] != far {
		t.Errorf("a client and a system: %+v", spec)
	}
	if got := r.namesOfPaths(r.sites["s"], cell, false); got != "client→a" {
		t.Errorf("what a put needs is measured: %s", got)
	}
	cell.Overhead = &experiment.Overhead{Operation: "get"}
	if got := r.namesOfPaths(r.sites["s"], cell, false); got != "a→client" {
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

// Links between machines are recorded as what they are.
func TestRealLinksAreMeasured(t *testing.T) {
	t.Parallel()
	plan := memPlan(t, `
scenario: overhead
systems: [mem]
data: {size: 1kB}
overhead: {operation: [put, get], count: 1}
repetitions: 1
warmup: 0
limits: {others: none, machine: none}
skip: [machine]
`)
	dir := filepath.Join(t.TempDir(), "run")
	cfg := Config{Plan: plan, Systems: []system.System{mem.System{}}, Scenario: overhead.Scenario{}, Dir: dir,
		Machines: 2}
	res, err := Run(t.Context(), cfg)
	if err != nil || res.Trials != len(plan.Cells) {
		t.Fatalf("%+v, %v", res, err)
	}
	from := map[string]bool{}
	for _, l := range linksOf(t, dir) {
		if from[l.From] = true; l.Emulator != record.RealLink || !l.OK || !(l.RTT > 0) || !(l.Rate > 0) ||
			l.WantRTT != 0 {
			t.Errorf("%+v", l)
		}
	}
	if len(from) != 2 {
		t.Errorf("measured from %v, want both directions", from)
	}
}

// Round trips of pairs need the emulator that knows pairs.
func TestRegionsChooseTheEmulator(t *testing.T) {
	cfg := swarmConfig(t, 4, "")
	cfg.Plan.Cells[0].Link.Regions = experiment.Regions{{Table: "ibm-cloud"}}
	for emulator, refused := range map[string]bool{"auto": false, "user": false, "netem": true} {
		cfg.Plan.Experiment.Link.Emulator = emulator
		if got := Blocking(checkLinks(t.Context(), cfg)); len(got) > 0 != refused || !refused &&
			testbedOptions(cfg).Emulate != "user" {
			t.Errorf("%s: %+v", emulator, got)
		}
	}
}

// linksOf are the link checks of a run.
func linksOf(t *testing.T, dir string) []record.LinkCheck {
	t.Helper()
	db, err := record.Open(dir)
	must(t, err)
	defer db.Close()
	all, err := db.Links()
	must(t, err)
	return all
}
