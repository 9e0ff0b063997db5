package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/scenario/disseminate"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/bittorrent"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func swarmConfig(t *testing.T, n int, more string) Config {
	t.Helper()
	plan := swarmPlan(t, fmt.Sprintf(swarmExperiment, n, more))
	return Config{Plan: plan, Systems: []system.System{bittorrent.System{}}, Scenario: disseminate.Scenario{}}
}

// The nodes of all systems are there at the same time, each system as many as its
// largest cell has.
func TestNodesMustFitIntoMemory(t *testing.T) {
	cfg := swarmConfig(t, 32, "")
	each := float64((bittorrent.System{}).Info().NodeMemory)
	if need := nodeMemory(cfg, ourPlace(cfg)); need.bytes != 32*each || each == 0 {
		t.Errorf("32 nodes of %g bytes take %+v", each, need)
	}
	small := cfg.Plan.Cells[0]
	d := *small.Disseminate
	d.Nodes = 4
	small.Disseminate = &d
	cfg.Plan.Cells = append(cfg.Plan.Cells, small)
	if need := nodeMemory(cfg, ourPlace(cfg)); need.bytes != 32*each {
		t.Errorf("with a smaller cell besides they take %+v", need)
	}
	need := memoryNeed{bytes: 2.4e9 + 1e9, parts: []string{"32 nodes of deluge take about 2.4 GB",
		"16 nodes of a take about 1 GB"}, unknown: []string{"b"}}
	if got := need.over(3.4e9); got != nil {
		t.Errorf("it fits, and %+v", got)
	}
	got := need.over(1.1e9)
	const want = "32 nodes of deluge take about 2.4 GB, 16 nodes of a take about 1 GB, together 3.40 GB (not " +
		"counted: b); 1.10 GB of memory are available"
	if len(got) != 1 || !got[0].Blocking || got[0].What != want || !strings.Contains(got[0].Hint, "skip: [memory]") {
		t.Errorf("got %+v", got)
	}
}

// More nodes than fit are refused before anything is started, and by the name of
// the check alone they are not.
func TestTooManyNodesAreRefused(t *testing.T) {
	cfg := swarmConfig(t, 256, "")
	cfg.Systems = []system.System{huge{}}
	cfg.Dir = t.TempDir() + "/run"
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

// All nodes have the content at the end of a trial: that must fit onto the disk.
func TestSwarmsMustFitOntoTheDisk(t *testing.T) {
	cfg := swarmConfig(t, 32, "")
	if got := Blocking(checkDisk(t.Context(), cfg)); len(got) > 0 {
		t.Fatalf("32 × 512 KiB: %+v", got)
	}
	for i := range cfg.Plan.Cells {
		cfg.Plan.Cells[i].Data.Size = 1 << 50
	}
	// 2^55 = 36,029 PB
	if got := Blocking(checkDisk(t.Context(), cfg)); len(got) != 1 || !strings.Contains(got[0].What, "36") {
		t.Errorf("32 × 1 PiB: %+v", got)
	}
}

// The systems' trials come one after the other, so the disk has to hold one swarm's
// content, of the largest, however many systems there are; that is what the plan
// says, too. Their nodes are all up at the same time.
func TestTwoSwarmsOnOneMachine(t *testing.T) {
	plan := swarmPlan(t, strings.Replace(fmt.Sprintf(swarmExperiment, 8, ""),
		"systems: [{use: bittorrent, with: {piece: 16KiB}}]", "systems: [{use: bittorrent, name: a}, {use: "+
			"bittorrent, name: b}]", 1))
	for i := range plan.Cells {
		plan.Cells[i].Data.Size = 1 << 50
	}
	cfg := Config{Plan: plan, Systems: []system.System{bittorrent.System{}}, Scenario: disseminate.Scenario{}}
	const bytes = 8 << 50
	got := Blocking(checkDisk(t.Context(), cfg))
	if len(got) != 1 || !strings.HasSuffix(got[0].What, "needs up to "+words.Bytes(bytes)) {
		t.Errorf("two systems of 8 × 1 PiB: %+v", got)
	}
	if need := nodeMemory(cfg, ourPlace(cfg)); need.bytes != 16*float64((bittorrent.System{}).Info().NodeMemory) {
		t.Errorf("16 nodes take %+v", need)
	}
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
		{", faults: [{cut: nodes, count: 1, at: 50%, for: 5s}]", "netem", "netem", "netem does not know"},
		{", faults: [{cut: nodes, count: 1, at: 50%, for: 5s}]", "none", "none", "changes single nodes' links"},
		{", faults: [{rate: 1Mbit, at: 50%}]", "netem", "netem", ""},
		{", faults: [{rate: 1Mbit, at: 50%}]", "none", "none", "changes single nodes' links"},
		{", slow: 50%, slow_up: 1Mbit", "none", "none", "changes single nodes' links"},
	} {
		cfg := swarmConfig(t, 4, c.more)
		cfg.Plan.Experiment.Link.Emulator = c.emulator
		if got := testbedOptions(cfg).Emulate; got != c.want {
			t.Errorf("%s with %s: the testbed is asked for %s, not %s", c.more, c.emulator, got, c.want)
		}
		got := Blocking(checkLinks(t.Context(), cfg))
		if (c.problem == "") != (len(got) == 0) || len(got) > 0 && !strings.Contains(got[0].What, c.problem) {
			t.Errorf("%s with %s: %+v", c.more, c.emulator, got)
		}
	}
}

func TestHostsOfAPlan(t *testing.T) {
	cells := swarmConfig(t, 3, "").Plan.Cells
	if got := hostNames("a", cells); !slices.Equal(got, []string{"a-01", "a-02", "a-03"}) {
		t.Errorf("a swarm of three: %q", got)
	}
	if got := hostNames("a", []experiment.Cell{{}}); !slices.Equal(got, []string{"a"}) {
		t.Errorf("no swarm: %q", got)
	}
	if got := MachinesFor(swarmConfig(t, 3, "").Plan, 2); got != 5 {
		t.Errorf("a swarm of three and two load generators: %d machines", got)
	}
}

// A trial's limit leaves room for what comes late in a swarm.
func TestSwarmsHaveTime(t *testing.T) {
	limits := experiment.Limits{Deadline: experiment.Duration(time.Minute),
		Start: experiment.Duration(30 * time.Second)}
	for _, c := range []struct {
		more string
		late time.Duration
	}{
		{", join: {wave: 1, every: 10s}", 30 * time.Second},
		{", join: {poisson: 0.1/s}", 40 * time.Second},
		{", stay: 50s", 50 * time.Second},
		{", faults: [{crash: leechers, count: 1, at: 20s, for: 10s}]", 30*time.Second + 30*time.Second + time.Minute},
		{", faults: [{cut: nodes, count: 1, at: 20s, for: 40s}]", time.Minute},
		{", fresh: true", 30 * time.Second},
	} {
		plan := swarmConfig(t, 5, c.more).Plan
		plan.Experiment.Limits = limits
		if got := (&run{plan: plan}).trialTime(plan.Cells[0]); got < limits.Deadline.Std()+c.late {
			t.Errorf("%s: %s, want %s more than the deadline", c.more, got, c.late)
		}
	}
	if nodesTime(experiment.Cell{}, limits) != 0 {
		t.Error("other scenarios have time of swarms")
	}
}

// smallMachine is one elsewhere, with 1 GB of memory.
type smallMachine struct {
	testbed.Machine
	name string
}

func (m smallMachine) Name() string                             { return m.name }
func (smallMachine) AvailableMemory() (float64, error)          { return 1e9, nil }
func (smallMachine) Problems(testbed.Options) []testbed.Problem { return nil }

type hostOn struct {
	testbed.Host
	machine testbed.Machine
}

func (h hostOn) Machine() testbed.Machine { return h.machine }

// Hosts elsewhere must have what their own nodes need; what is wrong there is said of them.
func TestEachMachineIsAsked(t *testing.T) {
	cfg := swarmConfig(t, 32, "")
	each := float64((bittorrent.System{}).Info().NodeMemory)
	fit := int(1e9 / each)
	hosts := func(n int, m testbed.Machine) (all []testbed.Host) {
		for range n {
			all = append(all, hostOn{machine: m})
		}
		return all
	}
	far, crowded := smallMachine{name: "far"}, smallMachine{name: "crowded"}
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
