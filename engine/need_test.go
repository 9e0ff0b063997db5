package engine

import (
	"context"
	"errors"
	"math/big"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// chain is a node that comes to its senses by and by.
type chain struct {
	system.Node
	begun     time.Time
	synced    time.Duration // after which it is
	unlocked  time.Duration
	contracts time.Duration // each takes that long; 0: there is none
	balance   float64
	broken    error
}

func (c *chain) Calls() []system.Call {
	after := func(d time.Duration) float64 {
		if time.Since(c.begun) >= d {
			return 1
		}
		return 0
	}
	return []system.Call{
		{Name: "/consensus", Read: func(context.Context) ([]system.Reading, error) {
			return []system.Reading{{Name: system.ReadSynced, Value: after(c.synced)},
				{Name: system.ReadHeight, Value: 7}}, c.broken
		}},
		{Name: "/wallet", Read: func(context.Context) ([]system.Reading, error) {
			return []system.Reading{{Name: system.ReadUnlocked, Value: after(c.unlocked)},
				{Name: system.ReadBalance, Value: c.balance}}, nil
		}},
		{Name: "/renter/contracts", Read: func(context.Context) ([]system.Reading, error) {
			n := 0.0
			if c.contracts > 0 {
				n = float64(time.Since(c.begun) / c.contracts)
			}
			// Each contract costs 3, of which 2 can be spent in it.
			return []system.Reading{{Name: system.ReadContracts, Value: n}, coins(system.ReadSpent, 3*int64(n)),
				coins(system.ReadUnspent, 2*int64(n))}, nil
		}},
	}
}

// coins are so many of 24 decimals.
func coins(name string, n int64) system.Reading {
	return system.Money(name, new(big.Int).Mul(big.NewInt(n), new(big.Int).Exp(big.NewInt(10), big.NewInt(24), nil)))
}

// A system is waited for until it has all that the experiment needs, in virtual
// time; what it lacks is said, and by the deadline refused.
func TestNeedsAreWaitedFor(t *testing.T) {
	minutes := func(n int) experiment.Duration { return experiment.Duration(time.Duration(n) * time.Minute) }
	for _, c := range []struct {
		name       string
		node       chain
		need       experiment.Need
		skip       []string
		continuing bool
		refused    string        // name of the precondition; empty: it holds
		what       string        // in the message
		took       time.Duration // at least
		most       time.Duration
		said       string
		ends       time.Duration // with the run, of whose end no precondition says anything; 0: it goes on
	}{
		{name: "all is well", node: chain{balance: 600}, need: experiment.Need{Balance: "500", Wait: minutes(30)}},
		{name: "synced after 10 minutes", node: chain{synced: 10 * time.Minute},
			need: experiment.Need{Wait: minutes(30)}, took: 10 * time.Minute, most: 11 * time.Minute,
			said: "synced: sys: not synced; it is at block 7"},
		{name: "never synced", node: chain{synced: time.Hour}, need: experiment.Need{Wait: minutes(30)},
			refused: "synced", what: "after 30 min", took: 30 * time.Minute, most: 31 * time.Minute},
		{name: "never synced, skipped", node: chain{synced: time.Hour}, need: experiment.Need{Wait: minutes(30)},
			skip: []string{"synced"}},
		{name: "locked", node: chain{unlocked: time.Hour}, need: experiment.Need{Wait: minutes(1)}, refused: "unlocked",
			what: "locked"},
		{name: "too poor", node: chain{balance: 499.5}, need: experiment.Need{Balance: "500", Wait: minutes(1)},
			refused: "balance", what: "its balance is 499.5, the experiment needs 500"},
		{name: "poor and goes on", node: chain{balance: 1}, need: experiment.Need{Balance: "500", Wait: minutes(1)},
			continuing: true},
		{name: "contracts are formed", node: chain{contracts: time.Minute},
			need: experiment.Need{Contracts: 20, Wait: minutes(30)}, took: 20 * time.Minute, most: 21 * time.Minute,
			said: "contracts: sys: it has 3 of 20 contracts"},
		{name: "too few contracts in time", node: chain{contracts: 2 * time.Minute},
			need: experiment.Need{Contracts: 20, Wait: minutes(30)}, refused: "contracts",
			what: "it has 15 of 20 contracts"},
		{name: "no contract", node: chain{}, need: experiment.Need{Contracts: 1, Wait: minutes(5)},
			refused: "contracts", what: "0 of 1"},
		{name: "an API that answers HTML", node: chain{broken: errors.New("HTML instead of JSON"), synced: time.Hour},
			need: experiment.Need{Wait: minutes(5)}, refused: "synced", what: "/consensus: HTML instead of JSON"},
		{name: "the run ends", node: chain{synced: time.Hour}, need: experiment.Need{Wait: minutes(60)},
			ends: time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := c.node
				node.begun = time.Now()
				var said []string
				w := waiter{name: "sys", node: &node, need: c.need, skip: c.skip,
					say: func(s string) { said = append(said, s) }}
				ctx := t.Context()
				if c.ends > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.ends)
					defer cancel()
				}
				err := w.ready(ctx, c.continuing)
				var refused *scenario.PreconditionError
				switch {
				case c.ends > 0:
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("got %v", err)
					}
				case c.refused == "" && err != nil:
					t.Fatal(err)
				case c.refused != "" && (!errors.As(err, &refused) || refused.Problems[0].Name != c.refused ||
					!strings.Contains(err.Error(), c.what) || refused.Hint() == ""):
					t.Fatalf("got %v, want %s: … %s", err, c.refused, c.what)
				}
				if took := time.Since(node.begun); took < c.took || c.most > 0 && took > c.most {
					t.Errorf("it took %v", took)
				}
				if c.said != "" && !strings.Contains(strings.Join(said, "\n"), c.said) {
					t.Errorf("said:\n%s\nwant %s", strings.Join(said, "\n"), c.said)
				}
			})
		})
	}
}

// A system that reports nothing is not waited for.
func TestNothingReported(t *testing.T) {
	w := waiter{name: "sys", need: experiment.Need{Contracts: 30, Wait: experiment.Duration(time.Hour)}}
	err := w.ready(t.Context(), false)
	if err == nil || !strings.Contains(err.Error(), "contracts: sys: it does not report its contracts") {
		t.Errorf("got %v", err)
	}
}

// A balance is compared exactly: a float would call one that lacks the smallest
// unit enough.
func TestBalanceIsExact(t *testing.T) {
	short := coins(system.ReadBalance, 3600)
	short.Amount.Sub(short.Amount, big.NewInt(1))
	for name, c := range map[string]struct {
		have system.Reading
		want int
	}{"enough": {coins(system.ReadBalance, 3600), 0}, "one hasting less": {short, 1},
		"nothing": {coins(system.ReadBalance, 0), 1}} {
		has := map[string]system.Reading{system.ReadBalance: c.have}
		w := waiter{name: "sys", need: experiment.Need{Balance: "3600"}}
		if got := w.unmet(has, nil, false); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
