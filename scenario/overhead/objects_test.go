package overhead

import (
	"errors"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
)

// All missing abilities of a system or its options are reported together before anything is stored,
// with the conditions that leave out the cells.
func TestProblems(t *testing.T) {
	always := map[string]string{"connections": "fresh"} // a system without persistent connections cannot keep any
	for _, c := range []struct {
		name     string
		identity map[string]string
		cells    []experiment.Cell
		want     []string // in the problem, and in the hint to each
	}{
		{"what it can", nil, []experiment.Cell{cell("put", 1), cell("get", 1), cell("fill", 1)}, nil},
		{"operations", nil, []experiment.Cell{cell("get", 1), cell("stat", 1), cell("stat", 2), cell("delete", 1)},
			[]string{"which the operation stat needs", "system != it || overhead.operation != stat",
				"which the operation delete needs", "system != it || overhead.operation != delete"}},
		{"durable", nil, []experiment.Cell{cell("put-durable", 1)}, []string{"durable", "overhead.operation != put-durable"}},
		{"directory", nil, []experiment.Cell{cell("put-dir", 1)}, []string{"directory", "!= put-dir"}},
		{"fresh", nil, []experiment.Cell{cell("put", 1, fresh)}, []string{"fresh",
			"system != it || overhead.connections != fresh"}},
		{"fresh anyway", always, []experiment.Cell{cell("put", 1, fresh)}, nil},
		{"keep", always, []experiment.Cell{cell("put", 1, fresh), cell("put", 1)}, []string{"connections: keep",
			"system != it || overhead.connections != keep", "connections: keep", "override: {connections: fresh}"}},
		{"no write", nil, []experiment.Cell{cell("get", 0)}, []string{"may not write", "allow: [write]"}},
	} {
		synthetic.Virtual(t, func(t *testing.T) {
			n := synthetic.MemNode(t, nil)
			site := synthetic.Site(system.Start, onlyNode{n})
			site.Cluster = synthetic.Cluster{Node: onlyNode{n}, Details: c.identity}
			_, err := scenario.Prepare(t.Context(), Scenario{}, system.Info{}, site, c.cells)
			var unfit *scenario.PreconditionError
			if errors.As(err, &unfit) != (c.want != nil) || err != nil && synthetic.Objects(t, n) > 0 {
				t.Fatalf("%s: %v, %d objects were stored", c.name, err, synthetic.Objects(t, n))
			}
			for i := 0; i < len(c.want); i += 2 {
				if !strings.Contains(unfit.Error(), c.want[i]) || !strings.Contains(unfit.Hint(), c.want[i+1]) {
					t.Errorf("%s: %v; %s", c.name, unfit, unfit.Hint())
				}
			}
			if told := (Scenario{}).Problems(site.Use, system.Info{Can: system.Abilities(onlyNode{n})}, c.cells); c.identity ==
				nil && len(told) != len(c.want)/2 {
				t.Errorf("%s: before it runs: %v", c.name, told)
			}
		})
	}
}

// Prepares agrees with Prepare.
func TestPrepares(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
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
		n := synthetic.MemNode(t, nil)
		if _, err := (Scenario{}).Prepare(t.Context(), synthetic.Site(system.Start, n), cells); err != nil {
			t.Fatal(err)
		}
		if h, err := n.Stats(t.Context()); err != nil || h.Objects != objects || h.Absolute != bytes {
			t.Errorf("%+v, %v", h, err)
		}
	})
}
