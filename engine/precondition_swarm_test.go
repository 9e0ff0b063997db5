package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/scenario/disseminate"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/bittorrent"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func swarmConfig(t *testing.T, n int, more string) Config {
	t.Helper()
	plan := mustPlan(t, fmt.Sprintf(swarmExperiment, n, more))
	return configOf(t, plan, bittorrent.System{}, disseminate.Scenario{})
}

// The nodes of all systems are there at the same time, each system as many as its
// largest cell has.
func TestNodesMustFitIntoMemory(t *testing.T) {
	cfg := swarmConfig(t, 32, "")
	each := float64((bittorrent.System{}).Info().NodeMemory)
	if each == 0 || lacksMemory(cfg, 32*each) != nil {
		t.Errorf("32 nodes of %g bytes do not fit into %g", each, 32*each)
	}
	small := cfg.Plan.Cells[0]
	d := *small.Disseminate
	d.Nodes = 4
	small.Disseminate = &d
	cfg.Plan.Cells = append(cfg.Plan.Cells, small)
	if got := lacksMemory(cfg, 32*each); got != nil {
		t.Errorf("with a smaller cell besides: %+v", got)
	}
	second := experiment.SystemUse{Name: "a", Use: cfg.Plan.Experiment.Systems[0].Use}
	cfg.Plan.Experiment.Systems = append(cfg.Plan.Experiment.Systems, second)
	small.System, d.Nodes = "a", 16
	cfg.Plan.Cells = append(cfg.Plan.Cells, small)
	got := lacksMemory(cfg, 48*each-1)
	want := fmt.Sprintf("32 nodes of bittorrent, 16 nodes of a take about %s; %s of memory are available",
		words.Bytes(48*each), words.Bytes(48*each-1))
	if len(got) != 1 || !got[0].Blocking || got[0].What != want || !strings.Contains(got[0].Hint, "skip: [memory]") {
		t.Errorf("got %+v, want %s", got, want)
	}
}

// withMemory is a machine with so many bytes available.
type withMemory struct {
	testbed.Machine
	free float64
}

func (m withMemory) AvailableMemory() (float64, error) { return m.free, nil }

// lacksMemory returns what a plan's memory check reports if so many bytes are available.
func lacksMemory(cfg Config, free float64) []Problem {
	at := ourPlace(cfg)
	at.Machine = withMemory{at.Machine, free}
	return checkMemory(context.Background(), cfg, at)
}

// More nodes than fit are refused before anything is started, and by the name of
// the check alone they are not.
func TestTooManyNodesAreRefused(t *testing.T) {
	cfg := swarmConfig(t, 256, "")
	cfg.Systems = []system.System{huge{}}
	_, err := Run(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "memory: 256 nodes of bittorrent take about ") {
		t.Errorf("got %v", err)
	}
	cfg.Plan.Experiment.Skip = append(cfg.Plan.Experiment.Skip, "memory", "scenario")
	for _, p := range Preconditions(t.Context(), cfg) {
		if p.Name == "memory" {
			t.Errorf("skipped, and %+v", p)
		}
	}
}

// huge is a system whose nodes fit into no machine.
type huge struct{ bittorrent.System }

func (h huge) Info() system.Info {
	i := h.System.Info()
	i.NodeMemory = 1 << 50
	return i
}

// What changes single links needs an emulator, and what parts nodes the one that
// knows pairs of them.
func TestFaultsChooseTheEmulator(t *testing.T) {
	for _, c := range []struct {
		more, emulator string
		want           string // of the testbed
		problem        string
	}{
		{"", "auto", "auto", ""},
		{"", "none", "none", ""},
		{", faults: [{crash: leechers, count: 1, at: 50%}]", "none", "none", ""},
		{", faults: [{cut: nodes, count: 1, at: 50%, for: 5s}]", "auto", "user", ""},
		{", faults: [{cut: nodes, count: 1, at: 50%, for: 5s}]", "user", "user", ""},
		{", faults: [{cut: nodes, count: 1, at: 50%, for: 5s}]", "netem", "netem", "netem cannot shape pairs"},
		{", faults: [{rate: 1Mbit, at: 50%}]", "netem", "netem", ""},
	} {
		cfg := swarmConfig(t, 4, c.more)
		cfg.Plan.Experiment.Link.Emulator = c.emulator
		if got := testbedOptions(cfg).Emulate; got != c.want {
			t.Errorf("%s with %s: the testbed is asked for %s, not %s", c.more, c.emulator, got, c.want)
		}
		got := Blocking(checkLinks(t.Context(), cfg, nodePlace{}))
		if (c.problem == "") != (len(got) == 0) || len(got) > 0 && !strings.Contains(got[0].What, c.problem) {
			t.Errorf("%s with %s: %+v", c.more, c.emulator, got)
		}
	}
}

// otherMachine is one elsewhere, with 1 GB of memory.
type otherMachine struct {
	testbed.Machine
	name string
	cpus int
}

func (m otherMachine) Name() string                             { return m.name }
func (m otherMachine) CPUs() int                                { return m.cpus }
func (otherMachine) AvailableMemory() (float64, error)          { return 1e9, nil }
func (otherMachine) Problems(testbed.Options) []testbed.Problem { return nil }

// named is a host of which nothing but its name and machine is asked.
type named struct {
	testbed.Host
	name    string
	machine testbed.Machine
}

func (n named) Name() string             { return n.name }
func (n named) Machine() testbed.Machine { return n.machine }

// Hosts elsewhere must have what their own nodes need; what is wrong there is said of them.
func TestEachMachineIsAsked(t *testing.T) {
	cfg := swarmConfig(t, 32, "")
	each := float64((bittorrent.System{}).Info().NodeMemory)
	fit := int(1e9 / each)
	hosts := func(n int, m testbed.Machine) (all []testbed.Host) {
		for range n {
			all = append(all, named{machine: m})
		}
		return all
	}
	far, crowded := otherMachine{name: "far"}, otherMachine{name: "crowded"}
	name := cfg.Plan.Experiment.Systems[0].Name
	for want, hosts := range map[string][]testbed.Host{
		"":                  hosts(32, testbed.Here()),
		"memory: crowded: ": slices.Concat(hosts(2, far), hosts(fit+1, crowded)),
	} {
		err := checkHosts(t.Context(), cfg, map[string][]testbed.Host{name: hosts})
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	if err := checkHosts(t.Context(), cfg, map[string][]testbed.Host{name: hosts(fit, far)}); err != nil {
		t.Errorf("its nodes fit: %v", err)
	}
}
