package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// The time for which a system was down is no lack of progress: the floor is
// judged anew once it is up again, and as strictly. What was spent before the
// trial is known to it.
func TestFloorAfterADeath(t *testing.T) {
	t.Parallel()
	bed, err := testbed.New(t.Context(), testbed.Options{Dir: t.TempDir(), Plain: true})
	must(t, err)
	defer bed.Close(context.WithoutCancel(t.Context()))
	plan := memPlan(t, strings.Replace(fmt.Sprintf(longExperiment, "attach", "floor: {bytes: 55B, window: 1h}"),
		"upload: {}", "upload: {poll: 6h}", 1))
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run")
		canonical, err := plan.Marshal()
		must(t, err)
		rec, err := record.Create(dir, canonical, nil, nil)
		must(t, err)
		defer rec.Close()
		slow := time.Duration(1 << 60) // nothing is stored from then on
		load := &slowLoad{
			every: time.Minute, objects: 1 << 30, bytes: 1,
			silent: func(at time.Duration) bool { return at > slow },
		}
		r := &run{
			cfg: Config{Plan: plan, Scenario: load, Dir: dir}, plan: plan, say: silent{}, begun: time.Now(), rec: rec,
			bed:  bed,
			done: map[trialKey]record.Trial{}, kept: map[trialKey]record.Trial{},
		}
		l := newLasting(t)
		r.sites = map[string]*site{"mem": {use: plan.Experiment.Systems[0], sys: l, cluster: l, runner: load}}
		trial := &execution{r: r, s: r.sites["mem"], cell: plan.Cells[0], continues: true}
		must(t, trial.open(t.Context()))
		during := func(d time.Duration) error {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			defer time.AfterFunc(d, func() { cancel(errDied) }).Stop()
			_, end, _ := trial.load(ctx)
			return end
		}
		if end := during(100 * time.Minute); !errors.Is(end, errDied) {
			t.Fatalf("ended by %v", end)
		}
		time.Sleep(25 * time.Minute)
		if end := during(3 * time.Hour); !errors.Is(end, errDied) {
			t.Errorf("after 25 minutes of downtime it was ended by %v", end)
		}
		slow = trial.clock.Now() + 30*time.Minute
		var stop *scenario.Stop
		if end := during(3 * time.Hour); !errors.As(end, &stop) || stop.Condition != "floor" {
			t.Errorf("nothing was stored, and it was ended by %v", end)
		}
	})
}
