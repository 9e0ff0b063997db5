package overhead

import (
	"errors"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"github.com/plimsoll-project/plimsoll/system"
)

// What the options of a system have taken away is told before anything is
// stored, all of it at once, with the conditions that leave the cells out.
func TestPrepareRefusesWhatTheNodeCannot(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		prepare := func(n system.Node, identity map[string]string, cells ...experiment.Cell) *scenario.UnfitError {
			t.Helper()
			site := scenariotest.Site(system.Start, n)
			site.Cluster = scenariotest.Cluster{Node: n, Details: identity}
			_, err := Scenario{}.Prepare(t.Context(), site, cells)
			var unfit *scenario.UnfitError
			if err != nil && !errors.As(err, &unfit) {
				t.Errorf("not an UnfitError: %v", err)
			}
			return unfit
		}
		n := scenariotest.MemNode(t, nil)
		e := prepare(onlyNode{n}, nil, cell("get", 1000), cell("stat", 1000), cell("stat", 2000), cell("delete", 1000),
			cell("put", 1000, fresh))
		if e == nil || len(e.Problems) != 3 || !strings.HasPrefix(e.Error(), "it: it cannot do the operation stat") {
			t.Fatalf("got %v", e)
		}
		for _, where := range []string{`system != it || overhead.operation != stat`,
			`system != it || overhead.operation != delete`, `system != it || overhead.connections != fresh`} {
			if !strings.Contains(e.Hint(), where) {
				t.Errorf("no %q in the hint %q", where, e.Hint())
			}
		}
		if scenariotest.Objects(t, n) != 0 {
			t.Error("something was stored")
		}
		if e := prepare(onlyNode{n}, nil, cell("get", 1000), cell("put", 1000)); e != nil {
			t.Errorf("what it can: %v", e)
		}

		// A system without lasting connections has no kept ones.
		always := map[string]string{"connections": "fresh"}
		if e := prepare(onlyNode{n}, always, cell("put", 1000, fresh)); e != nil {
			t.Errorf("fresh on a system that has no other connections: %v", e)
		}
		e = prepare(onlyNode{n}, always, cell("put", 1000, fresh), cell("put", 1000))
		if e == nil || len(e.Problems) != 1 || !strings.Contains(e.Error(), "connections: keep") ||
			!strings.Contains(e.Hint(), `system != it || overhead.connections != keep`) ||
			!strings.Contains(e.Hint(), "override: {connections: fresh}") {
			t.Errorf("keep on it: %v", e)
		}
	})
}

// Prepares says what Prepare then does.
func TestPrepares(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		four := func(o *experiment.Overhead) { o.Concurrency = 4 }
		cells := []experiment.Cell{
			cell("get", 1000), cell("stat", 1000, four), cell("get", 3000), cell("range", 10), cell("range", 20),
			cell("update", 500, four),
			cell("put", 1<<30), cell("delete", 1<<30),
		}
		objects, bytes := Scenario{}.Prepares(cells)
		if objects != 8+2+2+4 || bytes != 8*1000+2*3000+2<<20+4*500 {
			t.Errorf("%d objects, %d bytes", objects, bytes)
		}
		n := scenariotest.MemNode(t, nil)
		if _, err := (Scenario{}).Prepare(t.Context(), scenariotest.Site(system.Start, n), cells); err != nil {
			t.Fatal(err)
		}
		if h, err := n.Stats(t.Context()); err != nil || h.Objects != objects || h.Absolute != bytes {
			t.Errorf("%+v, %v", h, err)
		}
	})
}
