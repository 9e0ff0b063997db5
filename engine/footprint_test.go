package engine

import (
	"os/exec"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// busyCluster is a node with processes.
type busyCluster struct {
	sickCluster
	procs []testbed.Process
}

func (c busyCluster) Nodes() []system.Node         { return []system.Node{c} }
func (c busyCluster) Processes() []testbed.Process { return c.procs }

// What a process held once it was ready stands beside what it holds before each
// load; one that came later has no such number, and each says which it is.
func TestFootprintKnowsWhatWasThereAtTheStart(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("no sleep")
	}
	bed, err := testbed.New(t.Context(), testbed.Options{Plain: true, Dir: t.TempDir()})
	must(t, err)
	defer bed.Close(t.Context())
	host, err := bed.AddHost(t.Context(), "a")
	must(t, err)
	start := func(name string) testbed.Process {
		p, err := host.Start(t.Context(), testbed.Command{Name: name, Role: "system", Args: []string{sleep, "60"}})
		must(t, err)
		return p
	}
	first, later := start("first"), start("later")
	s := &site{cluster: busyCluster{procs: []testbed.Process{first, later}},
		started: map[testbed.ProcessID]testbed.Memory{first.ID(): {RSS: 7e6, PSS: 5e6}}}
	got := map[string]map[string]float64{}
	for _, d := range startFootprint(s).details() {
		if got[d.Name] == nil {
			got[d.Name] = map[string]float64{}
		}
		got[d.Name][d.Kind] = d.Value
	}
	a, b := got[first.Name()], got[later.Name()]
	if a[record.DetailPID] != float64(first.ID().PID) || a[record.DetailRSSStart] != 7e6 ||
		a[record.DetailPSSStart] != 5e6 || a[record.DetailRSSRest] <= 0 {
		t.Errorf("the first: %v", a)
	}
	if _, ok := b[record.DetailRSSStart]; ok || b[record.DetailPID] != float64(later.ID().PID) ||
		b[record.DetailRSSRest] <= 0 {
		t.Errorf("the later: %v", b)
	}
	if m := memoryOf(s.processes())[first.ID()]; m.RSS <= 0 || m.PSS <= 0 {
		t.Errorf("memory %+v", m)
	}
}
