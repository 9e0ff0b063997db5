package disseminate

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/bittorrent"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// TestSwarmOfProcesses runs three trials of four nodes of system bittorrent, without links of
// their own. In the second, the daemon of a leecher is killed behind the trial's back: this is an
// outcome of this leecher, which runs again in the third.
func TestSwarmOfProcesses(t *testing.T) {
	const size = 8 << 20
	hosts, _ := systemtest.SlowHosts(t, 64e6, 5)
	c, err := system.Begin(systemtest.Context(t), bittorrent.System{}, system.Start, system.Deployment{
		Hosts: hosts[:4], Client: hosts[4], Dir: t.TempDir(), Swarm: true,
	})
	must(t, err)
	t.Cleanup(func() {
		if err := c.Stop(systemtest.Context(t)); err != nil {
			t.Error(err)
		}
	})
	cell := experiment.Cell{ID: "c001", System: "bittorrent", Data: experiment.Data{Objects: 1, Size: size},
		Disseminate: sectionOf(t, "nodes: 4")}
	r, err := Scenario{}.Prepare(t.Context(), scenario.Site{
		Use: experiment.SystemUse{Name: "bittorrent", Mode: "start"}, Cluster: c, Seed: 1,
		Limits: experiment.Limits{
			Deadline: experiment.Duration(time.Minute), Stall: experiment.Duration(20 * time.Second),
			Start: experiment.Duration(30 * time.Second),
		},
	}, []experiment.Cell{cell})
	must(t, err)
	var got synthetic.Recorded
	for number := range 3 {
		victim := chooseRoles(cell.Disseminate, 1, uint64(number), number).leechers[0]
		var once sync.Once
		must(t, got.Run(systemtest.Context(t), Scenario{}, r, cell, uint64(number), scenario.Sink{Number: number,
			Progress: func(_, bytes int64) {
				if number == 1 && bytes > size/4 {
					once.Do(func() {
						if err := c.Nodes()[victim].Processes()[0].Signal(syscall.SIGKILL); err != nil {
							t.Error(err)
						}
					})
				}
			}}, scenario.Usage{}))
		t.Logf("trial %d: %v, %+v", number, got.M, got.Events)
		if len(got.Ops) != 3 || len(got.Marks) < 30 {
			t.Fatalf("trial %d: %d operations, %d marks", number, len(got.Ops), len(got.Marks))
		}
		for _, op := range got.Ops {
			want, class := record.OK, ""
			if number == 1 && int(op.Worker) == victim {
				want, class = record.Error, nodes.ClassDied
			}
			if op.Outcome != want || op.Class != class || want == record.OK && op.Bytes != size {
				t.Errorf("trial %d: node %d: %s: %s %q, %d bytes", number, op.Worker, op.Kind, op.Outcome, op.Class,
					op.Bytes)
			}
		}
		if d := got.M["duplicates"]; d < 1 || d > 1.5 {
			t.Errorf("trial %d: payload received is %v of the content", number, d)
		}
		// No data remains.
		for i, n := range c.Nodes() {
			if err := n.(system.Healther).Health(t.Context()); err != nil {
				t.Errorf("trial %d: node %d: %v", number, i, err)
			}
		}
	}
}
