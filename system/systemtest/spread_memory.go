package systemtest

import (
	"slices"
	"testing"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// memory gives a content to three leechers and compares what the nodes held on
// average, each at its highest, with what the system says that one does
// (system.Info.NodeMemory): not much more, and not so much less that the figure is of
// something else. A test binary holds less than plimsoll, and four nodes less than
// the 32 with which the figures were measured.
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
		w.watch(i+1, ref, size, w.limit(), func(f system.Progress) bool {
			look()
			return f.Complete
		})
	}
	var mean int64
	for _, p := range peak {
		mean += p / int64(len(peak))
	}
	w.t.Logf("nodes hold up to %.1f MiB of their own before %d MiB go from one to the others, and %.1f MiB on average meanwhile, the largest %.1f MiB; the system says %d MiB",
		float64(rest)/mib, size/mib, float64(mean)/mib, float64(slices.Max(peak))/mib, said/mib)
	if mean > said*3/2 { // content that comes faster than a busy disk takes it waits in memory
		w.t.Errorf("a node held %d bytes, the system says %d", mean, said)
	}
	if mean < said/6 {
		w.t.Errorf("a node held no more than %d bytes, and the system says %d", mean, said)
	}
	for _, n := range w.nodes {
		if err := n.Forget(Context(w.t), ref); err != nil {
			w.t.Error(err)
		}
	}
}

// own is what a process holds that is no page of a file, bytes: neither the pages
// of the program and its libraries, which the nodes of a swarm share, nor those of
// mapped content, which the kernel takes back when it needs them.
func own(t *testing.T, p *testbed.Process) int64 {
	t.Helper()
	proc, err := procfs.NewProc(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	r, err := proc.ProcSMapsRollup()
	if err != nil {
		t.Skipf("this kernel does not tell what is a process's own: %v", err)
	}
	return int64(r.Anonymous)
}
