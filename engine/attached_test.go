package engine

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

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

// once is one of the node's ways to store an object, for names that it has not had.
func (l *lasting) once(ctx context.Context, name string, size int64, r io.Reader,
	store func(context.Context, string, int64, io.Reader) (system.Ref, error)) (system.Ref, error) {
	if l.names[name] {
		return "", fmt.Errorf("there is an object %s already", name)
	}
	l.names[name] = true
	return store(ctx, name, size, r)
}

func (l *lasting) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return l.once(ctx, name, size, r, l.Node.Put)
}

func (l *lasting) Seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return l.once(ctx, name, size, r, l.Node.Seed)
}

func (l *lasting) PutMutable(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return l.once(ctx, name, size, r, l.Node.PutMutable)
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
`

// An attached system is left as it was found, and the same experiment can be run
// on it again; what cannot be removed is said and stands in nobody's way.
func TestAttachedSystemIsLeftAsItWas(t *testing.T) {
	slow(t)
	l := newLasting(t)
	for i, keeping := range []bool{false, true, false} {
		l.keeping = keeping
		before, err := system.All(t.Context(), l)
		must(t, err)
		cfg := configOf(t, mustPlan(t, attachedExperiment), l, overhead.Scenario{})
		res, err := Run(t.Context(), cfg)
		if err != nil || res.Failed != 0 || res.Trials != 5 {
			t.Fatalf("run %d: %+v, %v", i, res, err)
		}
		after, err := system.All(t.Context(), l)
		must(t, err)
		said := false
		for _, e := range readRun(t, cfg.Dir).events {
			said = said || e.What == "objects not removed" && strings.Contains(e.Detail, "objects of ours stay")
		}
		if said != keeping || (len(after) > len(before)) != keeping {
			t.Errorf("run %d: %d objects, %d before; it was said that some stay: %v", i, len(after), len(before), said)
		}
	}
}

// Systems that pay for what they do are not touched without leave.
func TestSpendingNeedsLeave(t *testing.T) {
	problemsOf := func(src string, sys system.System) []Problem {
		cfg := configOf(t, mustPlan(t, src), sys, overhead.Scenario{})
		return checkScenario(t.Context(), cfg, nodePlace{})
	}
	l := newLasting(t)
	for allow, want := range map[string]bool{"write": false, "write, spend": true} {
		problems := Blocking(problemsOf(strings.Replace(attachedExperiment, "write, spend", allow, 1), l))
		switch {
		case want && len(problems) != 0:
			t.Errorf("allow: [%s]: %v", allow, problems)
		case !want && (len(problems) != 1 || !strings.Contains(problems[0].What, "mem: it spends") ||
			!strings.Contains(problems[0].Hint, "allow: [write, spend]")):
			t.Errorf("allow: [%s]: %v", allow, problems)
		}
	}
	// One that is started spends play money.
	if problems := problemsOf(skippedExperiment, mem.System{}); len(problems) != 0 {
		t.Errorf("started: %v", problems)
	}
}
