package sync

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"github.com/plimsoll-project/plimsoll/system"
)

// TestSyncKept: the store of a node that does not start again is kept, whatever it
// says of the reason, and no more than a few of them.
func TestSyncKept(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		w := newSyncTest(t, 1, func(_ *fakeChains, cell *experiment.Cell) { cell.Sync.Faults = faultsOf("crash node at 50% for 2s") })
		w.c.nodes[0].follow = func(task system.FollowTask) error {
			if _, err := os.ReadFile(filepath.Join(task.Dir, "blocks")); err == nil {
				return errors.New("fake: the process has ended (exit status 2)")
			}
			return nil
		}
		for n := range keptStores + 2 {
			w.run()
			w.want("sync error not started again;serve error not started again;")
			e := w.happened("store kept")
			if n >= keptStores {
				if len(e) > 0 || len(w.happened("store not kept")) != 1 {
					t.Errorf("trial %d: %+v", n, w.events)
				}
				continue
			}
			if len(e) != 1 {
				t.Fatalf("trial %d: %+v", n, w.events)
			}
			_, dir, _ := strings.Cut(e[0].Detail, " is in ")
			if b, err := os.ReadFile(filepath.Join(dir, "blocks")); err != nil || !strings.HasPrefix(string(b), "50") {
				t.Errorf("%s: %q, %v", dir, b, err)
			}
		}
	})
}
