package retrieve

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
)

// kept is a node that refuses to remove objects of the data set.
type kept struct {
	served
	data map[system.Ref]bool
}

func (n *kept) Delete(ctx context.Context, ref system.Ref) error {
	if n.data[ref] {
		return errors.New("an object of the data set")
	}
	return n.served.Delete(ctx, ref)
}

// Operations have their ratio, and are reproducible with a seed. Only objects of the trial are
// removed, and only the data set remains at its end.
func TestMixedOperations(t *testing.T) {
	synthetic.Virtual(t, func(t *testing.T) {
		n := &kept{served{synthetic.MemNode(t, nil), 10}, map[system.Ref]bool{}}
		cell := cellOf(10)
		cell.Retrieve = &experiment.Retrieve{Concurrency: 4, Requests: 2000, Zipf: 1,
			Mix: &experiment.OperationMix{Get: 80, Put: 12, Delete: 8}}
		// A data set is stored once for all cells: there is no room for more.
		runner, err := Scenario{}.Prepare(t.Context(), synthetic.Site(system.Attach, n), []experiment.Cell{cell, cell})
		must(t, err)
		all, _ := system.All(t.Context(), n)
		for _, o := range all {
			n.data[o.Ref] = true
		}
		trial := func() (kinds map[record.OpKind]int, objects [10]int) {
			kinds = map[record.OpKind]int{}
			var observed []int
			observe := func() { observed = append(observed, synthetic.Objects(t, n.Node)) }
			var got synthetic.Recorded
			must(t, got.Run(t.Context(), Scenario{}, runner, cell, 3, scenario.Sink{Begin: observe, End: observe},
				scenario.Usage{}))
			for _, op := range got.Ops {
				kinds[op.Kind]++
				if op.Outcome != record.OK || op.Kind != record.OpDelete && op.Bytes != 1000 {
					t.Errorf("%+v", op)
				}
				if op.Kind == record.OpGet {
					objects[op.Object]++
				}
			}
			if len(observed) != 2 || observed[0] != 10 || observed[1]-10 != kinds[record.OpPut]-kinds[record.OpDelete] {
				t.Errorf("%v objects at the edges of the time that its resources are of, after %v", observed, kinds)
			}
			if left := synthetic.Objects(t, n.Node); left != 10 {
				t.Errorf("%d objects are left, want the 10 of the data set", left)
			}
			return kinds, objects
		}
		kinds, objects := trial()
		if kinds[record.OpGet] < 1520 || kinds[record.OpGet] > 1680 || kinds[record.OpPut] < 180 ||
			kinds[record.OpPut] > 300 || len(kinds) != 3 {
			t.Errorf("%v of 2,000 operations by 80:12:8", kinds)
		}
		if share := float64(objects[0]) / float64(kinds[record.OpGet]); share < 0.29 || share > 0.40 { // 0.341 expected
			t.Errorf("the most popular of 10 objects has %.3f of the reads", share)
		}
		if again, same := trial(); same != objects || again[record.OpGet] != kinds[record.OpGet] {
			t.Errorf("with the same seed %v, %v; before %v, %v", again, same, kinds, objects)
		}
		// Each removal finds nothing, or the object that the previous one stored instead.
		cell.Retrieve.Mix, cell.Retrieve.Requests, cell.Retrieve.Concurrency = &experiment.OperationMix{Delete: 1}, 20,
			1
		if kinds, _ := trial(); kinds[record.OpDelete] != kinds[record.OpPut] || len(kinds) != 2 {
			t.Errorf("removals alone: %v", kinds)
		}
		if err := runner.(scenario.Closer).Close(t.Context()); err == nil || synthetic.Objects(t, n.Node) != 10 {
			t.Error("the node refused to remove its data set, and nothing was said")
		}
	})
}

func TestMixNeeds(t *testing.T) {
	for able, want := range map[string][3]int{"http": {1, 1, 2}, "http put": {0, 0, 1}, "http put delete": {}} {
		for i, mix := range []experiment.OperationMix{{Get: 1}, {Put: 1}, {Get: 1, Delete: 1}} {
			cell := experiment.Cell{Retrieve: &experiment.Retrieve{Mix: &mix}}
			info := system.Info{Can: strings.Fields(able)}
			if got := (Scenario{}).Problems(experiment.SystemUse{}, info,
				[]experiment.Cell{cell}); len(got) != want[i] {
				t.Errorf("%s, %+v: %v", able, mix, got)
			}
		}
	}
}

// In three of five trials most puts were cut off: the table says that their median was not reached.
func TestKindsThatWereCutOff(t *testing.T) {
	cell := &analysis.Cell{ID: "c", System: "s3"}
	f := &analysis.Frame{View: Scenario{}.View(), Cells: []*analysis.Cell{cell}}
	for block := range 5 {
		trial := &analysis.Trial{Trial: record.Trial{ID: int64(block + 1), Block: block, State: record.Done, Seconds: 10},
			Info: cell}
		s := record.NewSummary()
		for i := range 10 {
			op := record.Op{Kind: record.OpPut, Start: 1, Intended: 1, LastByte: 1e9}
			if block < 3 && i < 8 {
				op.Outcome, op.LastByte = record.Deadline, 60e9
			}
			must(t, s.Ops([]record.Op{op}))
		}
		f.Rows = append(f.Rows, rowsOfKind(trial, "put", s)...)
	}
	table := kindTable(f)[0]
	if v := table.Get(0, "duration_p50"); !math.IsInf(float64(v.Number), 1) {
		t.Errorf("the median is %+v", v)
	}
}
