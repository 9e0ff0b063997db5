package sync

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// TestSyncDeaths checks that a process that ends by itself makes an outcome if it is the fresh
// node's, and a note if it is a peer's. It runs in real time, since it uses processes.
func TestSyncDeaths(t *testing.T) {
	for place, want := range map[int]string{
		0: "error daemon died",
		1: "stalled",
	} {
		w := follow(t, "replay: false")
		w.c.opens, w.c.waits = 10*time.Millisecond, 10*time.Millisecond
		w.site.Limits.Stall = experiment.Duration(300 * time.Millisecond)
		host := systemtest.Hosts(t, 1)[0]
		process, err := host.Start(systemtest.Context(t), testbed.Command{Name: filepath.Base(t.Name()), Role: "system",
			Args: []string{"sleep", "0.5"}, Dir: t.TempDir()})
		must(t, err)
		w.c.nodes[place].process = process
		go func() {
			<-process.Done()
			_ = w.c.nodes[place].Kill(t.Context())
		}()
		w.run(want)
		e := w.Happened(nodes.ClassDied)
		if len(e) != 1 || !strings.HasPrefix(e[0].Detail, w.runner.nodes[place].Name+": ") {
			t.Errorf("%+v", w.Events)
		}
		if n := strings.Join(w.Load.Notes, "|"); strings.Contains(n, "fake-02: daemon died") != (place == 1) {
			t.Errorf("notes %q", n)
		}
		if op := w.Ops[0]; op.Bytes == 0 || op.Bytes > fakeBytes/2 {
			t.Errorf("%+v", op)
		}
		if place == 0 { // the process of an earlier trial does not count in the next
			w.c.up = fakeBytes
			must(t, w.trial(t.Context()))
			if strings.Contains(w.outcomes(), nodes.ClassDied) {
				t.Errorf("the next trial: %s", w.outcomes())
			}
		}
	}
}
