package upload

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siad"
	"github.com/plimsoll-project/plimsoll/system/siasim"
)

// renter is the interface of a Sia renter's node.
type renter interface {
	unsettled
	system.Adopter
	system.Settler
	system.Stats
	system.Monitored
}

// mortalRenter is a renter whose client may be killed before and after each change.
type mortalRenter struct {
	renter
	c *crash
}

func (n mortalRenter) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	var ref system.Ref
	err := n.c.around("put", func() (err error) {
		ref, err = n.renter.Put(ctx, name, size, r)
		return err
	})
	return ref, err
}

func (n mortalRenter) Delete(ctx context.Context, ref system.Ref) error {
	return n.c.around("delete", func() error { return n.renter.Delete(ctx, ref) })
}

// Each session of a load test on an attached renter attaches anew. The first is killed at each of
// its steps, including between a put and the journal, and so is the second. The third leaves each
// object in the renter once, and no bytes were sent to hosts twice, except by puts that a kill
// interrupted.
func TestUploadToARenterSurvivesAnyCrash(t *testing.T) {
	t.Setenv(simPassword, siasim.Password)
	adopted := 0
	for first, over := 1, false; !over; first++ {
		synthetic.Virtual(t, func(t *testing.T) {
			sim := siasim.New(siasim.Config{Data: 1, Parity: 2, Hosts: 4, Contracts: 3, Sector: 256 << 10,
				Rate: 1 << 20})
			t.Cleanup(sim.Close)
			s := renterSessions{t: t, sim: sim, bench: &uploadBench{t: t, mode: system.Attach, ledger: newLedger(),
				limits: synthetic.Limits(), epoch: time.Now(), cell: uploadCell(renterObjects, 1000,
					func(u *experiment.Upload) { u.Verify = 1 })}}
			over = s.crashTwice(first, 1+first%5*4)
			adopted += s.adopted()
		})
		if t.Failed() {
			t.Fatalf("killed at step %d", first)
		}
		if over && first < 15 {
			t.Errorf("a whole session has %d steps", first-1)
		}
	}
	if adopted < 3 {
		t.Errorf("%d objects were stored without the journal knowing it, in all", adopted)
	}
}

type renterSessions struct {
	t     *testing.T
	sim   *siasim.Sim
	bench *uploadBench
	node  renter // node of the latest session
	cut   bool   // a session was killed during a put, whose bytes were sent in vain
}

// underWay reports whether the killed session was within a put.
func (c *crash) underWay() bool {
	within := false
	for _, what := range c.path[:len(c.path)-1] {
		switch what {
		case "before put":
			within = true
		case "after put":
			within = false
		}
	}
	return within && c.path[len(c.path)-1] != "after put"
}

const renterObjects = 3

// run runs one session that is killed at a step; 0: never.
func (s *renterSessions) run(at int) (*crash, yield, error) {
	cluster, err := system.Begin(s.t.Context(), siad.System{}, system.Attach, system.Deployment{Client: s.sim.Host(),
		Write: true, Run: "0123abcd", Options: system.Options{"url": s.sim.URL(), "password": simPassword}})
	must(s.t, err)
	defer func() {
		if err := cluster.Stop(context.Background()); err != nil {
			s.t.Error(err)
		}
	}()
	ctx, kill := context.WithCancelCause(s.t.Context())
	defer kill(nil)
	c := &crash{at: at, kill: kill}
	s.node = cluster.Nodes()[0].(renter)
	s.bench.node = mortalRenter{s.node, c}
	y, err := s.bench.sessionWith(ctx, mortalLedger{s.bench.ledger, c})
	synctest.Wait()
	s.cut = s.cut || c.dead && c.underWay()
	if !c.dead {
		s.stats()
	}
	return c, y, err
}

// stats checks the node's own counts, which must include the objects of earlier sessions.
func (s *renterSessions) stats() {
	s.t.Helper()
	h, err := s.node.Stats(s.t.Context())
	if truth := s.sim.Truth(); err != nil || h.Objects != renterObjects || !s.cut && h.Absolute != truth.Absolute ||
		h.Absolute <= 0 {
		s.t.Errorf("stats %+v, %v; truth: %d bytes on hosts", h, err, truth.Absolute)
	}
}

func (s *renterSessions) adopted() (n int) {
	for _, j := range s.bench.ledger.jobs {
		if j.Adopted {
			n++
		}
	}
	return n
}

// crashTwice reports whether the first session ended before it was killed.
func (s *renterSessions) crashTwice(first, second int) (over bool) {
	t := s.t
	c, _, err := s.run(first)
	over = !c.dead
	if over != (err == nil) {
		t.Errorf("killed %v at %q: %v", c.dead, c.path[len(c.path)-1], err)
	}
	if !over {
		if c, _, err = s.run(second); c.dead != (err != nil) {
			t.Errorf("killed %v at %q: %v", c.dead, c.path[len(c.path)-1], err)
		}
		if c.dead {
			_, last, err := s.run(0)
			must(t, err)
			if m := last.metrics; m["accepted"] != renterObjects || m["durable"] != renterObjects ||
				m["verified"] != renterObjects || m["missing"] != 0 || m["failed"] != 0 {
				t.Errorf("metrics %v", m)
			}
		}
	}
	stored := s.sim.Stored()
	for i, j := range s.bench.ledger.jobs {
		found := 0
		for path, o := range stored {
			if path == j.Ref {
				found++
				delete(stored, path)
				if o.Size != 1000 || o.SHA256 != s.bench.sum(j.Object) {
					t.Errorf("object %d is %+v, and recorded %+v", i, o, j)
				}
			}
		}
		if found != 1 || j.State != record.JobDurable {
			t.Errorf("object %d is stored %d times: %+v", i, found, j)
		}
	}
	if len(stored) > 0 || len(s.bench.ledger.jobs) != renterObjects {
		t.Errorf("stored, and not in the journal: %v", stored)
	}
	if truth := s.sim.Truth(); !s.cut && truth.Sent != truth.Absolute {
		t.Errorf("%d bytes were sent to hosts for the %d that are there: %v", truth.Sent, truth.Absolute, c.path)
	}
	return over
}
