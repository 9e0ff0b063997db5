package disseminate

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"github.com/plimsoll-project/plimsoll/system"
)

// slowly is a node that takes its time to start, or fails to, once.
type slowly struct {
	system.Restarter
	takes time.Duration
	fails error
}

func (r *slowly) Restart(ctx context.Context, keep bool) error {
	time.Sleep(r.takes)
	if err := r.fails; err != nil {
		r.fails = nil
		return err
	}
	return r.Restarter.Restart(ctx, keep)
}

// TestSwarmRecoveryOfTheOtherSide: a cut that takes the seeder away with some of
// the leechers strikes those that stay behind.
func TestSwarmRecoveryOfTheOtherSide(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 6, 1, withFaults("cut 50% of nodes at 20s for 20s"), nil)
		faults := s.cell.Disseminate.Faults
		with := func(seed uint64) bool { // the seeder is cut away with two leechers
			who := chooseRoles(s.cell.Disseminate, faults, 1, seed, 0)
			for _, v := range who.victims[0] {
				if v == who.seeders[0] {
					return true
				}
			}
			return false
		}
		for !with(s.seed) {
			if s.seed++; s.seed > 100 {
				t.Fatal("no seed has the seeder among the nodes that are cut away")
			}
		}
		s.run()
		// 4 MB each at 20 s. The two with the seeder have all at 32 s, the others go
		// on at 40 s.
		if s.outcomes() != "map[ok:5]" || s.m["recovered"] != 1 || s.m["stalls"] != 0 {
			t.Errorf("outcomes %s, metrics %v", s.outcomes(), s.m)
		}
		s.about("recovery", s.m["recovery"], 0)
		s.about("outage", s.m["outage"], 20)
		s.about("all", s.m["time_last"], 58)
	})
}

// TestSwarmOutage: what a fault took away is away until it is ready again, which
// is later than the fault says.
func TestSwarmOutage(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 3, 1, withFaults("crash seeders at 5s for 4s"), nil)
		for _, n := range s.runner.nodes {
			restarting(n, func(r system.Restarter) system.Restarter {
				return &slowly{Restarter: r,
					takes: 6 * time.Second}
			})
		}
		s.run()
		s.about("outage", s.m["outage"], 10)
		s.about("recovery", s.m["recovery"], 0)
		s.about("all", s.m["time_last"], 30)
		if e := s.happened("crash ends"); len(e) != 1 ||
			e[0].At.Add(e[0].Took).Sub(s.happened("crash begins")[0].At) < 10*time.Second {
			t.Errorf("%+v", s.events)
		}
	})
}

// TestSwarmNeverBack: one that cannot be started again has not recovered.
func TestSwarmNeverBack(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 5, 1, withFaults("crash 2 leechers at 5s for 4s"), nil)
		faults := s.cell.Disseminate.Faults
		bad := s.runner.nodes[chooseRoles(s.cell.Disseminate, faults, 1, s.seed, 0).victims[0][0]]
		restarting(bad, func(r system.Restarter) system.Restarter {
			return &slowly{Restarter: r,
				fails: system.ErrAnswer}
		})
		s.run()
		if s.outcomes() != "map[error not started again:1 ok:3]" || s.m["recovered"] != 0.5 {
			t.Errorf("outcomes %s, metrics %v", s.outcomes(), s.m)
		}
	})
}

// TestSwarmNotUndone: the load is over before a fault is undone.
func TestSwarmNotUndone(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 4, 1, withFaults("rate 4Mbit of seeders at 50% for 1h"), nil)
		s.run()
		notes := strings.Join(s.load.Notes, "|")
		if s.outcomes() != "map[ok:3]" || !strings.Contains(notes,
			`"rate 4Mbit of seeders at 50% for 1h" was not undone before the load was over`) ||
			len(s.happened("rate ends")) != 0 {
			t.Errorf("outcomes %s, notes %s, events %+v", s.outcomes(), notes, s.events)
		}
		if _, has := s.m["outage"]; has {
			t.Errorf("%v", s.m)
		}
	})
}

// tardy are links that heal some time after they were told to.
type tardy struct {
	*memLinks
	lag time.Duration
}

func (l *tardy) Change(ctx context.Context, c scenario.NetworkChange) error {
	if len(c.Apart) == 0 {
		time.AfterFunc(l.lag, func() { _ = l.memLinks.Change(context.WithoutCancel(ctx), c) })
		return nil
	}
	return l.memLinks.Change(ctx, c)
}

// TestSwarmPatienceAfterHealing: nodes that stalled in a cut and need longer than
// limits.stall after it to find each other are not given up as they begin.
func TestSwarmPatienceAfterHealing(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		s := newSwarmTest(t, 4, 1, withFaults("cut seeders at 10s for 1m"), nil)
		s.runner.site.Network = &tardy{s.links(), 45 * time.Second}
		s.run()
		if s.outcomes() != "map[ok:3]" || s.m["recovered"] != 1 {
			t.Errorf("outcomes %s, metrics %v", s.outcomes(), s.m)
		}
		s.about("recovery", s.m["recovery"], 45)
	})
}
