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

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/overhead"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// sickCluster answers its probe only after a while; until then it hangs.
type sickCluster struct{ well time.Time }

func (c sickCluster) Nodes() []system.Node       { return []system.Node{c} }
func (sickCluster) Identity() map[string]string  { return nil }
func (sickCluster) Stop(context.Context) error   { return nil }
func (sickCluster) Processes() []testbed.Process { return nil }
func (c sickCluster) Health(ctx context.Context) error {
	if time.Now().Before(c.well) {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// TestHealthIsPatientButNotForEver: in virtual time, a server that recovers
// within the patience is waited for; one that does not is given up, and never
// later than one probe after the patience. Ctrl-C does not wait for patience to end.
func TestHealthIsPatientButNotForEver(t *testing.T) {
	canceled := context.Canceled.Error()
	for _, c := range []struct {
		name         string
		after, ended time.Duration // when it recovers, and the user ends the run; 0: never
		want         string        // in the error
		most         time.Duration
	}{
		{"well", 0, 0, "", healthTimeout + healthPause},
		{"recovers", 40 * time.Second, 0, "", 40*time.Second + healthTimeout + healthPause},
		{"never recovers", time.Hour, 0, "sick: it did not answer its health probe",
			healthPatience + healthTimeout + healthPause},
		{"the user ends the run", time.Hour, 7 * time.Second, canceled, 8 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.ended > 0 {
					time.AfterFunc(c.ended, cancel)
				}
				r := &run{plan: &experiment.Plan{}, say: silent}
				s := &site{use: experiment.SystemUse{Name: "sick"}, cluster: sickCluster{time.Now().Add(c.after)},
					runner: &played{}}
				begun := time.Now()
				restarted, err := r.healthy(ctx, s)
				if restarted {
					t.Error("an attached system was restarted")
				}
				if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) ||
					c.want == canceled && !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				if took := time.Since(begun); took > c.most {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}

// unprepared is a scenario that fails to store its data a number of times.
type unprepared struct {
	*played
	failures int
}

func (u *unprepared) Prepare(ctx context.Context, at scenario.Site, cells []experiment.Cell) (scenario.Runner, error) {
	if u.failures--; u.failures >= 0 {
		return nil, errors.New("no space left")
	}
	return u.played.Prepare(ctx, at, cells)
}

func (*unprepared) Prepares([]experiment.Cell) (objects, bytes int64) { return 1, 1e12 }

// The limit of a trial has room for a restart with all data.
func TestTrialLimitIncludesPreparation(t *testing.T) {
	plan := mustPlan(t, skippedExperiment)
	r := &run{cfg: Config{Plan: plan, Scenario: &unprepared{}}, plan: plan, sites: map[string]*site{"mem": {
		use: plan.Experiment.Systems[0]}}}
	if limit, ready := r.trialTime(plan.Cells[0]), r.readyTime(r.sites["mem"]); limit <= ready {
		t.Errorf("a trial has %s, its preparation may take %s", limit, ready)
	}
}

// A restarted system whose data could not be stored is restarted again before the next trial: it answers, but has no
// runner.
func TestPreparedAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	plan := mustPlan(t, skippedExperiment)
	canonical, err := plan.Marshal()
	must(t, err)
	bed, err := testbed.New(t.Context(), testbed.Options{Dir: t.TempDir(), Plain: true})
	must(t, err)
	defer bed.Close(context.WithoutCancel(t.Context()))
	host, err := bed.AddHost(t.Context(), "mem")
	must(t, err)
	rec, err := record.Create(filepath.Join(t.TempDir(), "run"), canonical, nil, nil)
	must(t, err)
	defer rec.Close()
	r := &run{cfg: Config{Plan: plan, Scenario: &unprepared{&played{}, 1}}, plan: plan, say: silent, rec: rec,
		bed: bed, scratch: t.TempDir(), identities: map[string]map[string]string{}}
	hosts := []testbed.Host{host}
	s := &site{use: plan.Experiment.Systems[0], sys: mem.System{}, hosts: hosts, generators: hosts}
	for _, want := range []string{"no space left", "<nil>"} {
		restarted, err := r.healthy(t.Context(), s)
		if fmt.Sprint(err) != want || !restarted || (s.runner == nil) != (err != nil) {
			t.Errorf("restarted %v, runner %v, error %v; want %s", restarted, s.runner, err, want)
		}
	}
}

// broken is a system that does not start.
type broken struct{ mem.System }

func (broken) Start(context.Context, system.Deployment) (system.Cluster, error) {
	return nil, errors.New("no answer")
}

func TestSystemThatDoesNotStart(t *testing.T) {
	t.Parallel()
	cfg := configOf(t, mustPlan(t, skippedExperiment), broken{}, overhead.Scenario{})
	_, err := Run(t.Context(), cfg)
	if ui.ExitCode(err) != ui.CodePreconditions || !strings.Contains(fmt.Sprint(err), "mem: no answer") ||
		!strings.Contains(ui.Hint(err), filepath.Join(cfg.Dir, record.LogsDir)) {
		t.Errorf("%v; %s", err, ui.Hint(err))
	}
}
