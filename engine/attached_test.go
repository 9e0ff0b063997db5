package engine

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/overhead"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

// lasting is a system that outlives runs, and refuses a name that it has had.
type lasting struct {
	mem.System
	*mem.Node
	names   map[string]bool
	keeping bool // deletes nothing
}

func newLasting(t *testing.T) *lasting {
	t.Helper()
	c, err := mem.System{}.Start(t.Context(), system.Deployment{})
	must(t, err)
	return &lasting{Node: c.Nodes()[0].(*mem.Node), names: map[string]bool{}}
}

func (l *lasting) Info() system.Info {
	i := l.System.Info()
	i.Modes = []system.Mode{system.Attach}
	return i
}

func (l *lasting) Attach(context.Context, system.Deployment) (system.Cluster, error) { return l, nil }

func (l *lasting) Nodes() []system.Node        { return []system.Node{l} }
func (l *lasting) Identity() map[string]string { return nil }
func (l *lasting) Stop(context.Context) error  { return nil }

func (l *lasting) take(name string) error {
	if l.names[name] {
		return fmt.Errorf("there is an object %s already", name)
	}
	l.names[name] = true
	return nil
}

func (l *lasting) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	if err := l.take(name); err != nil {
		return "", err
	}
	return l.Node.Put(ctx, name, size, r)
}

func (l *lasting) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	if err := l.take(name); err != nil {
		return "", err
	}
	return l.Node.Seed(ctx, name, size, r)
}

func (l *lasting) PutMutable(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	if err := l.take(name); err != nil {
		return "", err
	}
	return l.Node.PutMutable(ctx, name, size, r)
}

func (l *lasting) Delete(ctx context.Context, ref system.Ref) error {
	if l.keeping {
		return system.ErrReadOnly
	}
	return l.Node.Delete(ctx, ref)
}

const attachedExperiment = `
scenario: overhead
systems: [{use: mem, mode: attach}]
data: {size: 1kB}
overhead: {operation: [put, get, update, fill, delete], count: 2, objects: 10, range_of: 10kB}
allow: [write, spend]
repetitions: 1
warmup: 0
limits: {others: none, machine: none}
skip: [machine]
`

// An attached system is left as it was found, and the same experiment can be run
// on it again; what cannot be removed is said and stands in nobody's way.
func TestAttachedSystemIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	l := newLasting(t)
	plan := memPlan(t, attachedExperiment)
	for i, keeping := range []bool{false, true, false} {
		l.keeping = keeping
		before, err := system.All(t.Context(), l)
		must(t, err)
		dir := filepath.Join(t.TempDir(), "run")
		res, err := runPlan(t.Context(), Config{Plan: plan, Systems: []system.System{l}, Scenario: overhead.Scenario{},
			Dir: dir})
		if err != nil || res.Failed != 0 || res.Trials != 5 {
			t.Fatalf("run %d: %+v, %v", i, res, err)
		}
		after, err := system.All(t.Context(), l)
		must(t, err)
		r, err := record.Open(dir)
		must(t, err)
		events, err := r.Events()
		r.Close()
		must(t, err)
		said := false
		for _, e := range events {
			said = said || e.What == "objects not removed" && strings.Contains(e.Detail, "objects of ours stay")
		}
		if said != keeping || (len(after) > len(before)) != keeping {
			t.Errorf("run %d: %d objects, %d before; it was said that some stay: %v", i, len(after), len(before), said)
		}
	}
}

// Systems that pay for what they do are not touched without leave.
func TestSpendingNeedsLeave(t *testing.T) {
	l := newLasting(t)
	for allow, want := range map[string]bool{"write": false, "write, spend": true} {
		plan := memPlan(t, strings.Replace(attachedExperiment, "write, spend", allow, 1))
		problems := Blocking(checkScenario(t.Context(), Config{Plan: plan, Systems: []system.System{l},
			Scenario: overhead.Scenario{}}, nodePlace{}))
		switch {
		case want && len(problems) != 0:
			t.Errorf("allow: [%s]: %v", allow, problems)
		case !want && (len(problems) != 1 || !strings.Contains(problems[0].What, "mem: it pays") ||
			!strings.Contains(problems[0].Hint, "allow: [write, spend]")):
			t.Errorf("allow: [%s]: %v", allow, problems)
		}
	}
	// One that is started spends play money.
	plan := memPlan(t, skippedExperiment)
	if problems := checkScenario(t.Context(), Config{Plan: plan, Systems: []system.System{mem.System{}},
		Scenario: overhead.Scenario{}}, nodePlace{}); len(problems) != 0 {
		t.Errorf("started: %v", problems)
	}
}
