package upload

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siad"
	"github.com/plimsoll-project/plimsoll/system/siasim"
)

const day = 24 * time.Hour

// weeks are a load test of 25 days against a simulated siad.
type weeks struct {
	*uploadBench
	sim *siasim.Sim
}

const weeksPoll = 2 * time.Hour

// newWeeks makes one of so many objects of a byte, which the uplink is just
// fast enough for.
func newWeeks(t *testing.T, objects int, c siasim.Config, set ...func(*experiment.Upload)) *weeks {
	t.Helper()
	const each = 30 * 4 << 20
	c.Rate = float64(objects) * each / (25 * day).Seconds()
	if o := c.Faults.Overshoot; o != nil {
		c.Rate *= o.Mean / 3
	}
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
		u.Concurrency, u.Slot, u.Poll, u.Settle = 5, "accepted", experiment.Duration(weeksPoll),
			experiment.Duration(time.Second)
	}}, set...)...)
	b := &uploadBench{t: t, cluster: cluster, cell: cell, ledger: newLedger(), limits: scenariotest.Limits(),
		mode: "attach"}
	b.limits.Deadline, b.limits.Stall = experiment.Duration(30*day), experiment.Duration(30*day)
	b.name, b.node, b.epoch = "siad", cluster.Nodes()[0].(system.Store), time.Now()
	b.reports = 10 * time.Minute // one a second of 25 days would be most of the test's work
	return &weeks{b, sim}
}

const simPassword = "PLIMSOLL_TEST_WEEKS"

// reading of a poll; false: it is not there or not to be used.
func reading(p record.Poll, name string) (float64, bool) {
	for _, r := range p.Readings {
		if r.Name == name {
			return r.Value, r.Bad == ""
		}
	}
	return 0, false
}

func exactly(p record.Poll, name string) (*big.Int, bool) {
	for _, r := range p.Readings {
		if r.Name == name && r.Bad == "" {
			return new(big.Int).SetString(r.Exact, 10)
		}
	}
	return nil, false
}

// wealth is wallet and contracts together, with what is under way.
func wealth(p record.Poll) (*big.Int, bool) {
	sum := new(big.Int)
	for name, sign := range map[string]int64{system.ReadBalance: 1, system.ReadIncoming: 1, system.ReadOutgoing: -1,
		system.ReadSpent: 1} {
		a, ok := exactly(p, name)
		if !ok {
			return nil, false
		}
		sum.Add(sum, a.Mul(a, big.NewInt(sign)))
	}
	return sum, true
}

// steps are the changes of an amount from poll to poll, by the later one.
func (w *weeks) steps(of func(p record.Poll) (*big.Int, bool)) (all []wealthStep) {
	var last *big.Int
	for _, p := range w.ledger.polls {
		v, ok := of(p)
		if !ok {
			continue
		}
		if last != nil && v.Cmp(last) != 0 {
			all = append(all, wealthStep{p.Start, new(big.Int).Sub(v, last)})
		}
		last = v
	}
	return all
}

type wealthStep struct {
	at time.Duration
	by *big.Int
}

// gaps are the polls in which a call failed, with a part of why.
func (w *weeks) gaps(why string) (n int, from, to time.Duration) {
	for _, p := range w.ledger.polls {
		if slices.ContainsFunc(p.Calls, func(c record.PollCall) bool {
			return strings.Contains(c.Error, why) &&
				c.Error != ""
		}) {
			if n++; n == 1 {
				from = p.Start
			}
			to = p.Start
		}
	}
	return n, from, to
}

// check holds the journal to what the simulator knows: what is called stored is
// stored, with these bytes, once, and nothing else is.
func (w *weeks) check() {
	w.t.Helper()
	time.Sleep(max(time.Until(w.epoch.Add(12*day)), weeksPoll)) // by then a daemon that was down is back
	objects, err := w.node.(system.Lister).List(w.t.Context())
	if err == nil {
		err = w.cluster.Stop(w.t.Context()) // what failed puts left is deleted
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
		if !there || o.Size != j.Size || o.SHA256 != j.SHA256 {
			w.t.Errorf("%s is called %s, and is %+v (%v)", j.Ref, j.State, o, there)
		}
		delete(stored, string(j.Ref))
	}
	// An attempt whose fate could not be looked into, because the daemon did not
	// answer to the end, may have stored something: of those that were under way.
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

// TestUploadWeeksOnSia: load tests of 25 days against a simulated siad with
// faults of which amount and moment are known. What the journal and the polls say
// must be the truth.
func TestUploadWeeksOnSia(t *testing.T) {
	t.Setenv(simPassword, siasim.Password)
	const objects = 60
	leak, renewal, extra := siasim.SC(2_033_000), siasim.SC(69_300), siasim.SC(1_000_000)
	constant := func(w *weeks) {
		if s := w.steps(wealth); len(s) > 0 {
			w.t.Errorf("money came or went: %v", s)
		}
	}
	within := func(at, from time.Duration) bool { return at >= from && at <= from+weeksPoll }
	for _, test := range []struct {
		name   string
		faults siasim.Faults
		stored int // -1: some are not
		look   func(w *weeks)
	}{
		{"none", siasim.Faults{}, objects, func(w *weeks) {
			constant(w)
			if n, _, _ := w.gaps(""); n > 0 {
				w.t.Errorf("%d gaps", n)
			}
			last, truth := w.ledger.polls[len(w.ledger.polls)-1], w.sim.Truth()
			for name, want := range map[string]float64{
				system.ReadFiles: objects, system.ReadContracts: 50, system.ReadBelow: 0, system.ReadHosts: 60,
				system.ReadAbsolute: float64(truth.Absolute), system.ReadRedundancyMin: 3, system.ReadRedundancyMax: 3,
			} {
				if got, ok := reading(last, name); !ok || math.Abs(got-want) > 1e-6*want {
					w.t.Errorf("%s is %v, want %v", name, got, want)
				}
			}
			if spent, ok := exactly(last, system.ReadSpent); !ok || spent.Cmp(truth.Total) != 0 {
				w.t.Errorf("spent %v, truth %v", spent, truth.Total)
			}
		}},
		{"money", siasim.Faults{Events: []siasim.Event{
			{At: 10 * day, Do: siasim.Vanish(leak)}, {At: 13 * day, Do: siasim.RenewEarly(renewal)},
			{At: 16 * day, Do: siasim.Overfund(extra)},
		}}, objects, func(w *weeks) {
			all := w.steps(wealth)
			if len(all) != 2 || !within(all[0].at, 10*day) || !within(all[1].at, 13*day) ||
				all[0].by.CmpAbs(leak) != 0 || all[1].by.CmpAbs(renewal) != 0 || all[0].by.Sign() > 0 ||
				all[1].by.Sign() > 0 {
				w.t.Errorf("of the losses of %v on day 10 and %v on day 13 the polls show %v", leak, renewal, all)
			}
			bought := false
			for _, step := range w.steps(func(p record.Poll) (*big.Int, bool) { return exactly(p, system.ReadSpent) }) {
				bought = bought || within(step.at, 16*day) && step.by.Cmp(extra) > 0
			}
			if !bought {
				w.t.Error("no poll shows that contracts were bought on day 16")
			}
		}},
		{"dead host", siasim.Faults{Events: siasim.DeadHost(10*day, 7, 2*day)}, objects, func(w *weeks) {
			for _, p := range w.ledger.polls {
				hosts, ok1 := reading(p, system.ReadHosts)
				below, ok2 := reading(p, system.ReadBelow)
				switch {
				case !ok1 || !ok2:
					w.t.Fatalf("poll at %v lacks hosts or files", p.Start)
				case p.Start < 10*day && (hosts != 60 || below != 0), p.Start > 10*day+time.Hour && hosts != 59,
					p.Start < 12*day && below != 0, p.Start > 12*day+time.Hour && below == 0: // and it stays so
					w.t.Fatalf("at %v: %v hosts, %v files below their redundancy", p.Start, hosts, below)
				}
			}
		}},
		{"overshoot", siasim.Faults{Overshoot: &siasim.Overshoot{Mean: 5.3, Max: 11.3}}, objects, func(w *weeks) {
			constant(w)
			last, truth := w.ledger.polls[len(w.ledger.polls)-1], w.sim.Truth()
			for name, want := range map[string]float64{system.ReadRedundancyMean: truth.RedundancyMean,
				system.ReadRedundancyMax: truth.RedundancyMax, system.ReadRedundancyMin: truth.RedundancyMin} {
				if got, ok := reading(last, name); !ok || math.Abs(got-want) > 0.02*want { // some are under way
					w.t.Errorf("%s is %v, truth %v", name, got, want)
				}
			}
			if truth.RedundancyMean < 4.5 || truth.RedundancyMax < 9 {
				w.t.Errorf("truth %+v", truth)
			}
		}},
		{"down for a day", siasim.Faults{Down: []siasim.Window{{From: 10 * day, For: day}}}, -1, func(w *weeks) {
			constant(w)
			if n, from, _ := w.gaps("refused"); n == 0 || from < 10*day {
				w.t.Errorf("%d gaps from %v on", n, from)
			}
		}},
		// No object is accepted in the first two: they come ten hours apart.
		{"a daemon in trouble", siasim.Faults{
			Down:      []siasim.Window{{From: 5*day - time.Minute, For: 2 * time.Minute}},
			HTML:      []siasim.Window{{From: 10*day - 2*time.Hour, For: 4 * time.Hour}},
			Underflow: []siasim.Window{{From: 15 * day, For: day}},
			Stall:     []siasim.Window{{From: 18 * day, For: 3 * day}},
		}, objects, func(w *weeks) {
			constant(w)
			if n, from, to := w.gaps("refused"); n != 1 || !within(from, 5*day) {
				w.t.Errorf("%d gaps by the restart, from %v to %v", n, from, to)
			}
			if n, from, to := w.gaps(""); n != 3 || !within(from, 5*day) || !within(to, 10*day) {
				w.t.Errorf("%d gaps, from %v to %v", n, from, to)
			}
			for _, p := range w.ledger.polls {
				absurd := slices.ContainsFunc(p.Readings, func(r record.Reading) bool { return r.Bad != "" })
				if inside := p.Start >= 15*day && p.Start < 16*day; inside != absurd {
					w.t.Errorf("at %v: readings are marked absurd: %v", p.Start, absurd)
				}
			}
			kinds := map[string]int64{}
			for _, k := range readPolls(&scenario.Measured{Polls: slices.Values(w.ledger.polls)}).trouble {
				kinds[k.subject+", "+k.class] = k.count
				if k.what == "reading not used" && (k.count != 12 || k.from < (15*day).Seconds() ||
					k.to >= (16*day).Seconds()) {
					w.t.Errorf("absurd readings: %+v", k)
				}
			}
			if kinds["/renter/files, connection refused"] != 1 || kinds["/renter/files, HTML instead of JSON"] != 2 ||
				len(w.ledger.events) > 60 {
				w.t.Errorf("%v; %d events", kinds, len(w.ledger.events))
			}
			for _, j := range w.ledger.jobs {
				if j.Accepted > 18*day+time.Minute && j.Accepted < 21*day {
					w.t.Errorf("object %d was accepted at %v, while nothing could be", j.Object, j.Accepted)
				}
			}
		}},
		{"storage full", siasim.Faults{Full: []siasim.Window{{From: 10 * day}}}, -1, func(w *weeks) {
			constant(w)
			if n := w.stored(); n < objects/4 || n > objects/2+5 {
				w.t.Errorf("%d of %d were stored in 10 of 25 days", n, objects)
			}
		}},
		{"swallowed", siasim.Faults{Swallow: []siasim.Window{{From: 10 * day}}}, -1, func(w *weeks) {
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
			scenariotest.Virtual(t, func(t *testing.T) {
				w := newWeeks(t, objects, siasim.Config{Faults: test.faults})
				ctx, cancel := context.WithTimeoutCause(t.Context(), 40*day, fmt.Errorf("it did not end"))
				defer cancel()
				if _, err := w.session(ctx); err != nil && test.name != "storage full" {
					t.Fatal(err)
				}
				test.look(w) // before check: the simulator goes on while that waits
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
