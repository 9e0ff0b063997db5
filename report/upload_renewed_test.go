package report

import (
	"context"
	"math"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/siad"
	"github.com/plimsoll-project/plimsoll/system/siasim"
)

// Contracts that are renewed take what they had used out of the account. That is
// no loss, and it stays used; what is lost beside it is found where the system
// tells of contracts that are over.
func TestRenewedContractsLoseNothing(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects = 30, 1500
	truth := s.report(t).Loads[0].Money
	s.allRenewed = 20
	for _, tells := range []bool{true, false} {
		s.tellsEnded = tells
		r := s.report(t)
		for _, rule := range []string{"money-missing", "money-sum", "counter-fell", "money-came-in", "money-under-way"} {
			if r.found(rule) != nil {
				t.Errorf("tells %v: %s: %s", tells, rule, r.evidence(rule))
			}
		}
		if r.Verdict.Tone != Good {
			t.Errorf("tells %v: verdict %+v", tells, r.Verdict)
		}
		m := r.Loads[0].Money
		want := float64(truth.Used.Value) + 100 // the fees of the new contracts
		if tells && math.Abs(float64(m.Used.Value)-want) > 1e-6 || m.AtLeast == tells {
			t.Errorf("tells %v: used %v, want %v; at least: %v", tells, m.Used.Value, want, m.AtLeast)
		}
		if !tells && (float64(m.Used.Value) > want+1e-6 || float64(m.Used.Value) < 0.9*float64(truth.Used.Value)) {
			t.Errorf("used %v of %v", m.Used.Value, want)
		}
		if (r.found("money-left") != nil) == tells {
			t.Errorf("tells %v: money-left: %q", tells, r.evidence("money-left"))
		}
	}
	s.tellsEnded, s.renewAt, s.renewLoss = true, 20, 69.3
	if e := s.report(t).evidence("money-missing"); !strings.Contains(e, "69.30 SC") {
		t.Errorf("69.3 SC lost while all contracts were renewed: %q", e)
	}
}

// Money that comes back after a day is another one.
func TestMoneyThatComesBackLate(t *testing.T) {
	s := plainLoad(1)
	s.hours, s.objects, s.leakAt, s.leak, s.depositAt, s.deposit = 40, 1500, 10, 33, 35, 33
	if r := s.report(t); r.found("money-missing") == nil || r.found("money-came-in") == nil {
		t.Errorf("33 SC lost and, a day later, deposited: %+v", r.Loads[0].Breaks)
	}
}

// Polls of a simulated siad over the renewal of all its contracts: nothing is
// lost, except what a fault made vanish.
func TestRenewalsOfSiad(t *testing.T) {
	const password = "PLIMSOLL_TEST_RENEWALS"
	const days = 24 * time.Hour
	t.Setenv(password, siasim.Defaults().Password)
	for _, fault := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := siasim.Config{Period: 12 * 144, RenewWindow: 4 * 144}
			if fault {
				c.Faults.PrematureRenewal = &siasim.Loss{At: 4*days + time.Minute, Amount: siasim.SC(69_300)}
			}
			sim := siasim.New(c)
			defer sim.Close()
			cluster, err := siad.System{}.Attach(t.Context(), system.Deployment{Client: sim.Host(), Write: true, Options: system.Options{"url": sim.SiadURL(), "password": password}})
			must(t, err)
			node := cluster.Nodes()[0]
			epoch := time.Now()
			w := newWatch()
			k := &collect.Collector{Node: node, Every: 20 * time.Minute, Now: func() time.Duration { return time.Since(epoch) }, Keep: func(p record.Poll) error {
				w.add(&p)
				return nil
			}}
			for i := range 12 * 72 { // 12 days
				if i%20 == 10 {
					_, err := node.Put(t.Context(), "object-"+time.Duration(i).String(), 1, strings.NewReader("x"))
					must(t, err)
				}
				time.Sleep(time.Until(epoch.Add(time.Duration(i) * 20 * time.Minute)))
				_, err := k.Once(t.Context())
				must(t, err)
			}
			w.close()
			l := &LoadTest{watch: w, info: &Cell{plan: plainLoad(1).plan(t).Cells[0]}, currency: "SC"}
			l.check()
			truth := sim.Truth()
			if !w.ended || truth.Fees.Cmp(siasim.SC(2*50*3459)) < 0 {
				t.Fatalf("no contract was renewed: fees %v", truth.Fees)
			}
			switch {
			case !fault && len(l.Breaks) > 0:
				t.Errorf("nothing was lost, and found: %+v", l.Breaks)
			case fault && (len(l.Breaks) != 1 || l.Breaks[0].Law != "wealth" || l.Breaks[0].Amount.Exact != "-69.3"):
				t.Errorf("69.3 SC were lost, and found: %+v", l.Breaks)
			}
			used := new(big.Int).Sub(truth.Total, truth.Unspent)
			if m := w.economy("SC", experiment.Price{}, "", true, 43, 43, 1); m.Used.Exact != w.amount(ratOf(used), experiment.Price{}).Exact || m.AtLeast {
				t.Errorf("used %v, the truth is %v", m.Used, used)
			}
			must(t, cluster.Stop(context.Background()))
		})
	}
}
