package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/overhead"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

const exitExperiment = `
scenario: overhead
systems: [{use: mem, with: {a: 100ms, errors: "%s"}}]
data: {size: 1kB}
overhead: {operation: [put, get], count: 4}
repetitions: 50
warmup: 0
limits: {others: none, machine: none}
exit: {%s}
skip: [machine]
`

// Exit conditions end a run of scenario overhead, and a run that they have ended
// stays ended.
func TestExitConditionsEndOverhead(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	for _, c := range []struct {
		condition, errors, exit string
		most                    int // trials
	}{
		{"max_bytes", "0", "max_bytes: 6kB", 2}, // each trial moves 4 kB
		{"max_errors", "1", "max_errors: 50%", 1},
		{"max_runtime", "0", "max_runtime: 2s", 20},
	} {
		t.Run(c.condition, func(t *testing.T) {
			cfg := Config{
				Plan: memPlan(t, fmt.Sprintf(exitExperiment, c.errors, c.exit)), Systems: []system.System{mem.System{}},
				Scenario: overhead.Scenario{}, Dir: filepath.Join(t.TempDir(), "run"),
			}
			res, err := Run(t.Context(), cfg)
			if err != nil || res.Stopped == nil || res.Stopped.Condition != c.condition || res.Trials < 1 ||
				res.Trials > c.most {
				t.Fatalf("%+v, %v, %v", res, res.Stopped, err)
			}
			r, err := record.Open(cfg.Dir)
			must(t, err)
			meta := r.Meta()
			r.Close()
			if !strings.Contains(meta["stopped"], c.condition) {
				t.Errorf("recorded: %q", meta["stopped"])
			}
			if c.condition == "max_errors" {
				return // it is judged trial by trial: a resumed run tries another
			}
			cfg.Resume = true
			again, err := Run(t.Context(), cfg)
			if err != nil || again.Stopped == nil || again.Trials != res.Trials {
				t.Errorf("resumed: %+v, %v", again, err)
			}
		})
	}
}

// rude is a system that breaks off once it was asked often enough to connect anew.
type rude struct {
	*lasting
	left int
}

func (r *rude) Attach(context.Context, system.Deployment) (system.Cluster, error) { return r, nil }
func (r *rude) Nodes() []system.Node                                              { return []system.Node{r} }

func (r *rude) Redial(ctx context.Context) error {
	if r.left--; r.left < 0 {
		return errors.New("enough")
	}
	return r.lasting.Redial(ctx)
}

// A trial that could not be executed to its end moved bytes all the same.
func TestFailedTrialsCountForExitConditions(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	src := strings.Replace(attachedExperiment, "overhead: {operation: [put, get, update, fill, delete], count: 2, "+
		"objects: 10, range_of: 10kB}",
		"overhead: {operation: put, connections: fresh, count: 4}\nexit: {max_bytes: 2kB}", 1)
	sys := &rude{newLasting(t), 2}
	res, err := Run(t.Context(), Config{Plan: memPlan(t, src), Systems: []system.System{sys},
		Scenario: overhead.Scenario{}, Dir: filepath.Join(t.TempDir(), "run")})
	if err != nil || res.Failed != 1 || res.Trials != 0 || res.Stopped == nil || res.Stopped.Condition != "max_bytes" {
		t.Errorf("%+v, %v, %v", res, res.Stopped, err)
	}
}
