package upload

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/synthetic"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siad"
	"github.com/plimsoll-project/plimsoll/system/siasim"
)

const day = 24 * time.Hour

// weeks is a load test of 25 days against a simulated siad.
type weeks struct {
	*uploadBench
	sim     *siasim.Sim
	cluster system.Cluster
}

const weeksPoll = 2 * time.Hour

// newWeeks returns a load test of a number of objects of one byte, for which the uplink is just
// fast enough.
func newWeeks(t *testing.T, objects int, c siasim.Config, set ...func(*experiment.Upload)) *weeks {
	t.Helper()
	const each = 30 * 4 << 20
	c.Rate = float64(objects) * each / (25 * day).Seconds()
	sim := siasim.New(c)
	t.Cleanup(sim.Close)
	cluster, err := system.Begin(t.Context(), siad.System{}, system.Attach, system.Deployment{
		Client: sim.Host(), Write: true, Options: system.Options{"url": sim.URL(), "password": simPassword},
	})
	must(t, err)
	t.Cleanup(func() {
		if err := cluster.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	cell := uploadCell(objects, 1, append([]func(*experiment.Upload){func(u *experiment.Upload) {
		u.Concurrency, u.Poll, u.Settle = 5, experiment.Duration(weeksPoll),
			experiment.Duration(time.Second)
	}}, set...)...)
	b := &uploadBench{t: t, cell: cell, ledger: newLedger(), limits: synthetic.Limits(), mode: system.Attach}
	b.limits.Deadline, b.limits.Stall = experiment.Duration(30*day), experiment.Duration(30*day)
	b.node, b.epoch = cluster.Nodes()[0].(system.Store), time.Now()
	b.reports = 10 * time.Minute // one per second for 25 days would dominate the test's work
	return &weeks{b, sim, cluster}
}

const simPassword = "PLIMSOLL_TEST_WEEKS"

// polls returns the readings of the recorded polls.
func (w *weeks) polls() *readings {
	return readPolls(&scenario.Measured{Polls: slices.Values(w.ledger.polls)})
}

// near compares the last reading of each name with the truth.
func (w *weeks) near(tolerance float64, truth map[string]float64) {
	w.t.Helper()
	polls := w.polls()
	for name, want := range truth {
		if got := polls.values[name].upTo(math.Inf(1)); !(math.Abs(got-want) <= tolerance*want) {
			w.t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}

// moneySteps returns the changes of the sum of wallet and contracts from poll to poll.
func (w *weeks) moneySteps() (all []moneyStep) {
	polls := w.polls().wealth
	for i := 1; i < len(polls); i++ {
		if by := minus(polls[i].level, polls[i-1].level); by.Sign() != 0 {
			all = append(all, moneyStep{polls[i].start, by})
		}
	}
	return all
}

type moneyStep struct {
	at float64
	by *big.Int
}

// check compares the journal with the simulator: objects recorded as stored are stored once, with
// the right bytes, and nothing else is.
func (w *weeks) check() {
	w.t.Helper()
	time.Sleep(max(time.Until(w.epoch.Add(12*day)), weeksPoll)) // by then, a daemon that was down runs again
	objects, err := system.All(w.t.Context(), w.node.(system.Lister))
	if err == nil {
		err = w.cluster.Stop(w.t.Context()) // deletes what failed puts left
	}
	if err != nil {
		w.t.Fatal(err)
	}
	stored := w.sim.Stored()
	for _, j := range w.ledger.jobs {
		if j.State != record.JobAccepted && j.State != record.JobDurable {
			continue
		}
		o, there := stored[string(j.Ref)]
		if !there || o.Size != j.Size || o.SHA256 != w.sum(j.Object) {
			w.t.Errorf("%s is called %s, and is %+v (%v)", j.Ref, j.State, o, there)
		}
		delete(stored, string(j.Ref))
	}
	// An attempt in progress whose result could not be inspected, because the daemon did not
	// answer any more, may have stored something.
	doubts := 0
	for _, o := range objects {
		for _, j := range w.ledger.jobs {
			if (j.State == record.JobFailed || j.State == record.JobRefused) && j.Name == o.Name {
				delete(stored, string(o.Ref))
				doubts++
			}
		}
	}
	if doubts > w.cell.Upload.Concurrency {
		w.t.Errorf("%d objects are stored and called failed", doubts)
	}
	if len(stored) > 0 {
		w.t.Errorf("stored, and not in the journal: %v", stored)
	}
	truth := w.sim.Truth()
	if truth.Missing.Sign() != 0 {
		w.t.Errorf("the simulator's own accounts are wrong: %+v", truth)
	}
}

func (w *weeks) stored() int {
	return w.ledger.count(record.JobAccepted) + w.ledger.count(record.JobDurable)
}

// TestUploadWeeksOnSia runs load tests of 25 days against a simulated siad with faults of known
// amount and time. The journal and the polls must agree with the simulator.
func TestUploadWeeksOnSia(t *testing.T) {
	t.Setenv(simPassword, siasim.Password)
	const objects = 60
	leak, extra := siasim.SC(2_033_000), siasim.SC(1_000_000)
	constant := func(w *weeks) {
		if s := w.moneySteps(); len(s) > 0 {
			w.t.Errorf("money came or went: %v", s)
		}
	}
	within := func(at float64, from time.Duration) bool {
		return at >= from.Seconds() && at <= (from+weeksPoll).Seconds()
	}
	for _, test := range []struct {
		name   string
		faults siasim.Faults
		stored int // -1: some are not
		look   func(w *weeks)
	}{
		{"none", siasim.Faults{}, objects, func(w *weeks) {
			constant(w)
			polls, truth := w.polls(), w.sim.Truth()
			w.near(1e-6, map[string]float64{
				system.ReadFiles: objects, system.ReadContracts: 50, system.ReadBelow: 0, system.ReadHosts: 60,
				system.ReadAbsolute: float64(truth.Absolute), system.ReadRedundancyMin: 3, system.ReadRedundancyMax: 3,
			})
			if spent := polls.last[system.ReadSpent]; len(polls.trouble) > 0 || spent == nil || spent.Cmp(truth.Total) != 0 {
				w.t.Errorf("spent %v, truth %v; in trouble: %v", spent, truth.Total, polls.trouble)
			}
		}},
		{"money", siasim.Faults{Events: []siasim.Event{
			{At: 10 * day, Do: siasim.Vanish(leak)}, {At: 16 * day, Do: siasim.Overfund(extra)},
		}}, objects, func(w *weeks) {
			all := w.moneySteps()
			if len(all) != 1 || !within(all[0].at, 10*day) || all[0].by.CmpAbs(leak) != 0 || all[0].by.Sign() > 0 {
				w.t.Errorf("of the loss of %v on day 10 the polls show %v", leak, all)
			}
			spent := w.polls().values[system.ReadSpent]
			if i := spent.find((16 * day).Seconds()); !(1e24*(spent[i+1].Value-spent[i-1].Value) > float(extra)) {
				w.t.Error("no poll shows that contracts were bought on day 16")
			}
		}},
		{"down for a day", siasim.Faults{Down: siasim.Window{From: 10 * day, For: day}}, -1, func(w *weeks) {
			constant(w)
			if all := w.polls().trouble; len(all) == 0 || all[0].class != "connection refused" ||
				all[0].from < (10*day).Seconds() {
				w.t.Errorf("gaps %+v", all)
			}
		}},
		// No object is accepted during the first two faults: objects come ten hours apart.
		{"a daemon in trouble", siasim.Faults{
			Down:      siasim.Window{From: 5*day - time.Minute, For: 2 * time.Minute},
			HTML:      siasim.Window{From: 10*day - 2*time.Hour, For: 4 * time.Hour},
			Underflow: siasim.Window{From: 15 * day, For: day},
			Stall:     siasim.Window{From: 18 * day, For: 3 * day},
		}, objects, func(w *weeks) {
			constant(w)
			for _, p := range w.ledger.polls {
				absurd := slices.ContainsFunc(p.Readings, func(r record.Reading) bool { return r.Bad != "" })
				if inside := p.Start >= 15*day && p.Start < 16*day; inside != absurd {
					w.t.Errorf("at %v: readings are marked absurd: %v", p.Start, absurd)
				}
			}
			kinds := map[string]int64{}
			for _, k := range w.polls().trouble {
				kinds[k.subject+", "+k.class] = k.count
				if k.class == "connection refused" && !within(k.from, 5*day) ||
					k.class == "malformed answer" && !within(k.to, 10*day) {
					w.t.Errorf("gaps %+v", k)
				}
				if k.what == "reading not used" && (k.count != 12 || k.from < (15*day).Seconds() ||
					k.to >= (16*day).Seconds()) {
					w.t.Errorf("absurd readings: %+v", k)
				}
			}
			if kinds["/renter/files, connection refused"] != 1 || kinds["/renter/files, malformed answer"] != 2 ||
				len(w.ledger.events) > 60 {
				w.t.Errorf("%v; %d events", kinds, len(w.ledger.events))
			}
			for _, j := range w.ledger.jobs {
				if j.Accepted > 18*day+time.Minute && j.Accepted < 21*day {
					w.t.Errorf("object %d was accepted at %v, while nothing could be", j.Object, j.Accepted)
				}
			}
		}},
		{"storage full", siasim.Faults{Full: siasim.Window{From: 10 * day}}, -1, func(w *weeks) {
			constant(w)
			if n := w.stored(); n < objects/4 || n > objects/2+5 {
				w.t.Errorf("%d of %d were stored in 10 of 25 days", n, objects)
			}
		}},
		{"swallowed", siasim.Faults{Swallow: siasim.Window{From: 10 * day}}, -1, func(w *weeks) {
			constant(w)
			if n := w.ledger.count(record.JobFailed); n == 0 {
				w.t.Error("uploads that were answered 204 and stored nowhere were not called failed")
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if testing.Short() && test.name != "money" {
				t.Skip("25 days, even in virtual time")
			}
			synthetic.Virtual(t, func(t *testing.T) {
				w := newWeeks(t, objects, siasim.Config{Faults: test.faults})
				ctx, cancel := context.WithTimeoutCause(t.Context(), 40*day, fmt.Errorf("it did not end"))
				defer cancel()
				if _, err := w.session(ctx); err != nil && test.name != "storage full" {
					t.Fatal(err)
				}
				test.look(w) // before check, which waits while the simulator continues
				w.check()
				if n := w.stored(); test.stored >= 0 && n != test.stored || test.stored < 0 && n >= objects {
					t.Errorf("%d objects are stored", n)
				}
				if last := w.ledger.polls[len(w.ledger.polls)-1].End; test.stored == objects && last < 20*day {
					t.Errorf("it was over after %v", last)
				}
			})
		})
	}
}
