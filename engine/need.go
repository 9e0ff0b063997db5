package engine

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// needs are the preconditions that only a running system can report. The run waits for them
// before the first object is stored.
var needs = []string{"synced", "unlocked", "balance", "contracts"}

// pollEvery is the pause between two polls of a system while waiting.
const pollEvery = 5 * time.Second

// pollTimeout limits one poll.
const pollTimeout = 30 * time.Second

// amount returns a reading in the system's currency; nil: it is not a number.
func amount(r system.Reading) *big.Rat {
	if r.Amount == nil {
		return new(big.Rat).SetFloat64(r.Value)
	}
	return system.Coins(r.Amount)
}

// pollNode polls a node. It returns the usable readings, and why others may be missing.
func pollNode(ctx context.Context, n system.Node) (usable map[string]system.Reading, missing error) {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	usable = map[string]system.Reading{}
	m, monitored := n.(system.Monitored)
	if !monitored { // a listing of all objects says nothing about needs
		return usable, nil
	}
	for _, call := range m.Calls() {
		readings, err := call.Read(ctx)
		if err != nil {
			missing = errors.Join(missing, fmt.Errorf("%s: %w", call.Name, err))
		}
		for _, r := range readings {
			if delete(usable, r.Name); r.Bad == "" {
				usable[r.Name] = r
			}
		}
	}
	return usable, missing
}

// unmet returns the unmet needs of a system as problems. It must always be synced and unlocked,
// as far as it reports that. A trial that continues already has its money and contracts.
func (w waiter) unmet(has map[string]system.Reading, missing error, continuing bool) (all []Problem) {
	lacks := func(name, hint, format string, args ...any) {
		if slices.Contains(w.skip, name) {
			return
		}
		what := w.name + ": " + fmt.Sprintf(format, args...)
		if missing != nil {
			what += fmt.Sprintf(" (%v)", missing)
		}
		all = append(all, Problem{Name: name, What: what, Hint: hint, Blocking: true})
	}
	if synced, known := has[system.ReadSynced]; known && synced.Value < 1 {
		at := ""
		if height, known := has[system.ReadHeight]; known {
			at = fmt.Sprintf("; it is at block %.0f", height.Value)
		}
		lacks("synced", "let it find its peers and catch up; skip: [synced] continues without", "not synced%s", at)
	}
	if unlocked, known := has[system.ReadUnlocked]; known && unlocked.Value < 1 {
		lacks("unlocked", "unlock the wallet (siac wallet unlock); Plimsoll never asks for its password",
			"its wallet is locked")
	}
	for _, n := range []struct{ name, want, hint, has string }{
		{system.ReadBalance, string(w.need.Balance), "send it coins, or lower upload.need.balance",
			"its balance is %s, the experiment needs %s"},
		{system.ReadContracts, strconv.Itoa(w.need.Contracts),
			"give it an allowance, more hosts or more time (upload.need.wait)", "it has %s of %s contracts"},
	} {
		want, asked := new(big.Rat).SetString(n.want)
		if !asked || want.Sign() == 0 || continuing {
			continue
		}
		if reading, known := has[n.name]; !known || amount(reading) == nil {
			lacks(n.name, n.hint, "it does not report its %s", n.name)
		} else if have := amount(reading); have.Cmp(want) < 0 {
			lacks(n.name, n.hint, n.has, words.Decimal(have, 4), n.want)
		}
	}
	return all
}

// waiter waits for what a system needs before its first upload.
type waiter struct {
	name string
	node system.Node
	need experiment.Need
	skip []string
	say  func(what string) // called whenever what it waits for changes
}

// ready waits, for at most upload.need.wait, until a system has everything that its load test needs. It
// does not wait for a system that reports nothing.
func (w waiter) ready(ctx context.Context, continuing bool) error {
	begun, said := time.Now(), ""
	_, monitored := w.node.(system.Monitored)
	for {
		has, missing := pollNode(ctx, w.node)
		problems := w.unmet(has, missing, continuing)
		if len(problems) == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if waited := time.Since(begun); waited >= w.need.Wait.Std() || !monitored {
			for i := range problems {
				problems[i].What += fmt.Sprintf(", after %s", words.Duration(waited.Round(time.Second)))
			}
			return &scenario.PreconditionError{Problems: problems}
		}
		if text := (&scenario.PreconditionError{Problems: problems}).Error(); text != said {
			said = text
			w.say("waiting: " + strings.ReplaceAll(text, "\n", "; "))
		}
		timing.Pause(ctx, pollEvery)
	}
}
