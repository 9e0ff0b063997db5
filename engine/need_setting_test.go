package engine

import (
	"context"
	"fmt"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

// settable is a system whose setting is not as it is asked for.
type settable struct{ mem.System }

func (settable) Info() system.Info {
	i := mem.System{}.Info()
	i.Modes, i.Can = []system.Mode{system.Attach}, append(i.Can, "monitor")
	return i
}

func (settable) Attach(_ context.Context, d system.Deployment) (system.Cluster, error) {
	if !d.Write {
		return nil, fmt.Errorf("mem: packing is on, and off is asked for: %w", system.ErrReadOnly)
	}
	panic("a look wrote")
}

// What a run may change in a system, and a look may not, is no reason not to run.
func TestSettingsThatTheRunChanges(t *testing.T) {
	for _, allow := range [][]string{nil, {"write"}} {
		cfg := Config{Systems: []system.System{settable{}}, Plan: &experiment.Plan{
			Experiment: experiment.Experiment{Systems: []experiment.SystemUse{{Name: "mem", Use: "mem", Mode: "attach"}}, Allow: allow},
			Cells:      []experiment.Cell{{System: "mem", Upload: &experiment.Upload{}}},
		}}
		got := Needs(t.Context(), cfg)
		if len(got) != 1 || got[0].Blocking != (allow == nil) {
			t.Errorf("allow %v: %+v", allow, got)
		}
	}
}
