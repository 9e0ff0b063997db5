package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

// refusing is a system that cannot be attached to without writing, or not at all.
type refusing struct {
	mem.System
	err error
}

func (refusing) Info() system.Info {
	i := mem.System{}.Info()
	i.Modes, i.Can = []system.Mode{system.Attach}, append(i.Can, "monitor")
	return i
}

func (r refusing) Attach(_ context.Context, d system.Deployment) (system.Cluster, error) {
	if d.Write {
		panic("a look wrote")
	}
	return nil, r.err
}

// What doctor says of an attached system before a load test. What a run may change in
// a system, and a look may not, is no reason not to run.
func TestDoctorLooksAtAttachedSystems(t *testing.T) {
	setting := fmt.Errorf("mem: packing is on, and off is asked for: %w", system.ErrReadOnly)
	for _, c := range []struct {
		err   error
		allow []string
		want  int
	}{{setting, nil, 1}, {setting, []string{"write"}, 0}, {errors.New("mem: no answer"), []string{"write"}, 1}} {
		cfg := Config{Systems: []system.System{refusing{err: c.err}}, Plan: &experiment.Plan{
			Experiment: experiment.Experiment{
				Systems: []experiment.SystemUse{{Name: "mem", Use: "mem", Mode: "attach"}}, Allow: c.allow},
			Cells: []experiment.Cell{{System: "mem", Upload: &experiment.Upload{}}},
		}}
		got := Needs(t.Context(), cfg)
		if len(got) != c.want || len(Blocking(got)) != c.want {
			t.Errorf("%v, allow %v: %+v", c.err, c.allow, got)
		}
	}
}
