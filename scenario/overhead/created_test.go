package overhead

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

// onlyNode hides all abilities of a node except storing and reading.
type onlyNode struct{ system.Store }

// Close removes all objects of a run from an attached system: prepared ones, those of fill,
// directories, and those that were accepted before their operation failed. A started system is
// removed as a whole.
func TestCloseRemovesWhatWasStored(t *testing.T) {
	cells := []experiment.Cell{cell("get", 1000), cell("range", 1000), cell("update", 1000), cell("put-dir", 1000),
		cell("fill", 1000), cell("delete", 1000), cell("put-durable", 1000)}
	for _, mode := range []system.Mode{system.Attach, system.Start} {
		synthetic.Virtual(t, func(t *testing.T) {
			// No object is durable before the deadline of its operation.
			n := synthetic.MemNode(t, system.Options{"settle": "1h", "a": "1ms"})
			runner, err := Scenario{}.Prepare(t.Context(), synthetic.Site(mode, n), cells)
			must(t, err)
			for i, c := range cells {
				load, err := runner.Trial(t.Context(), c, uint64(i), synthetic.Sink(scenario.Sink{Epoch: time.Now()}))
				if err != nil {
					t.Fatalf("%s: %v, %+v", c.Overhead.Operation, err, load)
				}
			}
			// Two for get and two for range, one of them for prime; one to update; a directory;
			// those of fill; and six that never became durable, one of them from prime.
			const stay = 2 + 2 + 1 + 1 + 100 + 6
			if h := synthetic.Objects(t, n); h != stay {
				t.Errorf("%s: %d objects are there before Close, want %d", mode, h, stay)
			}
			if err := runner.(scenario.Closer).Close(t.Context()); err != nil {
				t.Error(err)
			}
			want := 0
			if mode == system.Start {
				want = stay
			}
			if h := synthetic.Objects(t, n); h != want {
				t.Errorf("%s: %d objects are there after Close, want %d", mode, h, want)
			}
		})
	}
}

func TestCloseSaysWhatStays(t *testing.T) {
	cells := []experiment.Cell{cell("get", 1000, func(o *experiment.Overhead) { o.Concurrency = 4 })}
	prepared := func(t *testing.T, n system.Node) scenario.Runner {
		t.Helper()
		runner, err := Scenario{}.Prepare(t.Context(), synthetic.Site(system.Attach, n), cells)
		must(t, err)
		return runner
	}
	synthetic.Virtual(t, func(t *testing.T) {
		if err := prepared(t, onlyNode{synthetic.MemNode(t, nil)}).(scenario.Closer).Close(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "8 objects of ours stay: it cannot remove") {
			t.Errorf("a node that cannot delete: %v", err)
		}
		n := synthetic.MemNode(t, nil)
		runner := prepared(t, n)
		n.Change(func(m *mem.Model) { m.Errors = 1 })
		if err := runner.(scenario.Closer).Close(t.Context()); !errors.Is(err, mem.ErrInjected) ||
			!strings.Contains(err.Error(), "8 of 8 objects of ours stay") {
			t.Errorf("a node that fails: %v", err)
		}
		// The wait for a hanging server is not repeated for every object.
		n.Change(func(m *mem.Model) { m.Errors, m.Hangs = 0, 1 })
		begun := time.Now()
		if err := runner.(scenario.Closer).Close(t.Context()); err == nil || !strings.Contains(err.Error(),
			"8 of 8 objects of ours stay") {
			t.Errorf("a node that hangs: %v", err)
		}
		if took := time.Since(begun); took != scenario.RemoveHangs*scenario.RemoveOneTimeout {
			t.Errorf("a node that hangs was waited for for %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun = time.Now()
		err := runner.(scenario.Closer).Close(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("bounded by a second: %v after %s", err, time.Since(begun))
		}
		// Later, it may work again.
		n.Change(func(m *mem.Model) { m.Hangs = 0 })
		if err := runner.(scenario.Closer).Close(t.Context()); err != nil || synthetic.Objects(t, n) != 0 {
			t.Errorf("well again: %v, %d objects", err, synthetic.Objects(t, n))
		}
	})
}

// Objects of failed puts are removed if refs follow from names; otherwise the error reports that
// objects may remain.
func TestCloseAfterFailedPuts(t *testing.T) {
	for _, named := range []bool{true, false} {
		synthetic.Virtual(t, func(t *testing.T) {
			broken := synthetic.MemNode(t, nil).Hooked(nil, func(_ context.Context, call, _ string) error {
				if call == "put" {
					return errors.New("the answer was lost")
				}
				return nil
			})
			var n system.Node = broken
			if !named {
				n = onlyNode{broken}
			}
			what := cell("put", 1000)
			runner, err := Scenario{}.Prepare(t.Context(), synthetic.Site(system.Attach, n), []experiment.Cell{what})
			must(t, err)
			_, err = runner.Trial(t.Context(), what, 1, synthetic.Sink(scenario.Sink{Epoch: time.Now()}))
			must(t, err)
			before := synthetic.Objects(t, broken)
			err = runner.(scenario.Closer).Close(t.Context())
			after := synthetic.Objects(t, broken)
			if before != 6 || named && (err != nil || after != 0) || !named && (err == nil || after != 6 ||
				!strings.Contains(err.Error(), "6 operations that failed may each have left an object")) {
				t.Errorf("%d objects before, %d after, %v", before, after, err)
			}
		})
	}
}

// A failed preparation leaves no objects in an attached system.
func TestFailedPrepareLeavesNothing(t *testing.T) {
	c := cell("get", 1000, func(o *experiment.Overhead) { o.Concurrency = 4 })
	synthetic.Virtual(t, func(t *testing.T) {
		room := 3
		n := synthetic.MemNode(t, nil).Hooked(func(_ context.Context, call, _ string) error {
			if room--; call == "seed" && room < 0 {
				return fmt.Errorf("full: %w", system.ErrQuota)
			}
			return nil
		}, nil)
		_, err := scenario.Prepare(t.Context(), Scenario{}, system.Info{}, synthetic.Site(system.Attach, n),
			[]experiment.Cell{c})
		if !errors.Is(err, system.ErrQuota) || !strings.HasPrefix(err.Error(), "it: ") {
			t.Error(err)
		}
		if left := synthetic.Objects(t, n); room >= 0 || left != 0 {
			t.Errorf("room for %d, %d objects are left", room, left)
		}
	})
}
