package systemtest

import (
	"slices"
	"testing"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// memory gives a content to three leechers and compares what the largest node
// held with what the system says that one does (system.Info.NodeMemory): never
// more, and not so much less that the figure is of something else.
func (w *swarm) memory() {
	said := w.s.System.Info().NodeMemory
	if said == 0 {
		w.t.Skip("the system does not say what a node holds")
	}
	const size = 64 * mib
	ref := w.publish(0, "memory", Bytes("memory", size))
	peak := make([]int64, len(w.nodes))
	look := func() {
		for i, n := range w.nodes {
			var sum int64
			for _, p := range n.Processes() {
				sum += own(w.t, p)
			}
			peak[i] = max(peak[i], sum)
		}
	}
	look()
	rest := slices.Max(peak)
	for i := range w.nodes[1:] {
		w.fetch(i+1, ref, 0)
	}
	for i := range w.nodes[1:] {
		w.watch(i+1, ref, size, w.limit(), func(f system.Fetched) bool {
			look()
			return f.Complete
		})
	}
	largest := slices.Max(peak)
	w.t.Logf("a node holds %d MiB of its own before %d MiB go from one to three others, and %d MiB at most meanwhile (by node: %v bytes); the system says %d MiB",
		rest/mib, size/mib, largest/mib, peak, said/mib)
	if largest > said {
		w.t.Errorf("a node held %d bytes, the system says %d", largest, said)
	}
	if largest < said/6 {
		w.t.Errorf("no node held more than %d bytes, and the system says %d", largest, said)
	}
	for _, n := range w.nodes {
		if err := n.Forget(Context(w.t), ref); err != nil {
			w.t.Error(err)
		}
	}
}

// own is what a process holds that it shares with none, bytes. The pages of the
// program and of its libraries, which the nodes of a swarm share, are not in it.
func own(t *testing.T, p *testbed.Process) int64 {
	t.Helper()
	proc, err := procfs.NewProc(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	r, err := proc.ProcSMapsRollup()
	if err != nil {
		t.Skipf("this kernel does not tell what a process shares: %v", err)
	}
	return int64(r.PrivateClean + r.PrivateDirty)
}
