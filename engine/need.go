package engine

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/system"
)

// A need is a precondition that only a system which runs can tell. It is waited
// for before the first object is stored.
type need struct {
	name string
	// asked reports whether the experiment wants it; what every system must be,
	// as far as it reports that, is always wanted.
	asked func(n experiment.Need) bool
	// missing says what is not as it should be; empty: it holds.
	missing func(n experiment.Need, s status) string
	hint    string
	again   bool // it must hold again when a trial goes on
}

// needs are all of them.
func needs() []need {
	always := func(experiment.Need) bool { return true }
	return []need{
		{"synced", always, func(_ experiment.Need, s status) string {
			if v, known := s.number(system.ReadSynced); known && v < 1 {
				if height, known := s.number(system.ReadHeight); known {
					return fmt.Sprintf("not synced; it is at block %.0f", height)
				}
				return "not synced"
			}
			return ""
		}, "let it find its peers and catch up; skip: [synced] continues without", true},
		{"unlocked", always, func(_ experiment.Need, s status) string {
			if v, known := s.number(system.ReadUnlocked); known && v < 1 {
				return "its wallet is locked"
			}
			return ""
		}, "unlock the wallet (siac wallet unlock); Plimsoll never asks for its password", true},
		{"balance", func(n experiment.Need) bool { return n.Balance != "" }, func(n experiment.Need, s status) string {
			have, known := s.money(system.ReadBalance)
			if !known {
				return "it does not report its balance"
			}
			want, ok := new(big.Rat).SetString(string(n.Balance))
			if ok && have.Cmp(want) >= 0 {
				return ""
			}
			return fmt.Sprintf("its balance is %s, the experiment needs %s", shortMoney(have), n.Balance)
		}, "send it coins, or lower upload.need.balance", false},
		{"contracts", func(n experiment.Need) bool { return n.Contracts > 0 },
			func(n experiment.Need, s status) string {
				v, known := s.number(system.ReadContracts)
				if !known {
					return "it does not report its contracts"
				}
				if v >= float64(n.Contracts) {
					return ""
				}
				return fmt.Sprintf("it has %.0f of %d contracts", v, n.Contracts)
			}, "give it an allowance, more hosts or more time (upload.need.wait)", false},
	}
}

// lookEvery is the pause between two looks at a system that is waited for.
const lookEvery = 5 * time.Second

// lookTimeout bounds one look.
const lookTimeout = 30 * time.Second

// status is what a system said of itself.
type status struct {
	readings map[string]system.Reading
	err      error // why there may be too few
}

func (s status) number(name string) (float64, bool) {
	r, ok := s.readings[name]
	return r.Value, ok && r.Bad == ""
}

// money is an amount in the currency.
func (s status) money(name string) (*big.Rat, bool) {
	r, ok := s.readings[name]
	if !ok || r.Bad != "" {
		return nil, false
	}
	if r.Amount == nil {
		v := new(big.Rat).SetFloat64(r.Value)
		return v, v != nil
	}
	unit := big.NewInt(1)
	if d, known := system.Decimals(r.Amount, r.Value); known { // else there is nothing
		unit.Exp(big.NewInt(10), big.NewInt(int64(d)), nil)
	}
	return new(big.Rat).SetFrac(r.Amount, unit), true
}

func shortMoney(r *big.Rat) string {
	text := r.FloatString(4)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// lookAt asks a node how it is, by what it is monitored with or, failing that, by
// its account of money: a listing of all objects has none of it.
func lookAt(ctx context.Context, n system.Node) status {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	s := status{readings: map[string]system.Reading{}}
	_, monitored := n.(system.Monitored)
	for _, call := range collect.Calls(n) {
		if !monitored && call.Name != collect.CallCosts {
			continue
		}
		readings, err := call.Read(ctx)
		if err != nil {
			s.err = errors.Join(s.err, fmt.Errorf("%s: %w", call.Name, err))
		}
		for _, r := range readings {
			s.readings[r.Name] = r
		}
	}
	return s
}

// wanting are the needs of a system that do not hold, as problems. A trial that goes on
// has its contracts already.
func (w waiter) wanting(s status, goesOn bool) (all []Problem) {
	for _, want := range needs() {
		if slices.Contains(w.skip, want.name) || !want.asked(w.need) || goesOn && !want.again {
			continue
		}
		what := want.missing(w.need, s)
		if what == "" {
			continue
		}
		if s.err != nil {
			what += fmt.Sprintf(" (%v)", s.err)
		}
		all = append(all, Problem{Name: want.name, What: w.name + ": " + what, Hint: want.hint, Blocking: true})
	}
	return all
}

// waiter waits for what a system needs before its first upload.
type waiter struct {
	name string
	node system.Node
	need experiment.Need
	skip []string
	say  func(what string) // what it waits for, each time that changes
}

// ready waits, at most for upload.need.wait, until a system has all that its load test needs.
func (w waiter) ready(ctx context.Context, goesOn bool) error {
	begun, said := time.Now(), ""
	for {
		problems := w.wanting(lookAt(ctx, w.node), goesOn)
		if len(problems) == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if waited := time.Since(begun); waited >= w.need.Wait.Std() {
			for i := range problems {
				problems[i].What += fmt.Sprintf(", after %s", words.Duration(waited))
			}
			return &PreconditionError{problems}
		}
		if text := (&PreconditionError{problems}).Error(); text != said {
			said = text
			w.say("waiting: " + strings.ReplaceAll(text, "\n", "; "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}
