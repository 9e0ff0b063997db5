package findings

import (
	"fmt"
	"math"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Sum is an amount of a system's currency. NaN: not known.
type Sum struct {
	Value    float64
	Currency string
	In       float64 // in another currency, at the price that the experiment states
	Other    string
}

// Words is an amount without its sign: "69.31 SC (0.970 USD)".
func (s Sum) Words() string {
	if s.Value-s.Value != 0 {
		return "–"
	}
	text := words.Money(math.Abs(s.Value), s.Currency)
	if s.In-s.In == 0 && s.Other != "" {
		text += " (" + words.Digits(math.Abs(s.In), 3) + " " + s.Other + ")"
	}
	return text
}

// Breach is an account or a counter of a system that did what it must not.
type Breach struct {
	Name     string  // of the load test
	Law      string  // that is broken
	Reading  string  // that changed
	Amount   Sum     // of money; negative: missing
	Fell     float64 // of a reading that is no money
	Unit     string
	Counts   bool    // the reading only grows, so that it is named with what it fell by
	Held     bool    // it stayed so for long enough; false: until the end, which came too soon to tell
	From, To float64 // seconds since the test began, between which it happened
	Maybe    string  // what else changed then
}

// Laws of accounts. The last two are no violations: money left the account with
// contracts, or waits in ended ones.
const (
	LawWealth  = "wealth"  // wallet and contracts are constant
	LawSum     = "sum"     // spending is the sum of its parts
	LawCounter = "counter" // a total only grows
	LawLeft    = "left"
	LawWaiting = "waiting"
)

// What is shorter may be money under way: a transaction waits for its block, and the
// calls of one poll are not made at one moment.
const (
	// HeldPolls is for how many polls in a row an account must stay changed.
	HeldPolls = 5
	// HeldSeconds is how long it must.
	HeldSeconds = 30 * 60
)

// FallShare is the share of a counter by which it may go down without a word:
// systems round what they tell.
const FallShare = 1e-3

// breaches are the evidence of those of a law that are so.
func breaches(all []Breach, law string, so func(*Breach) bool) (evidence []string) {
	for i := range all {
		b := &all[i]
		if b.Law != law || !so(b) {
			continue
		}
		what := b.Amount.Words()
		if b.Counts {
			if b.Amount.Value-b.Amount.Value != 0 {
				what = words.Show(b.Fell, b.Unit)
			}
			what = b.Reading + " fell by " + what
		}
		s := fmt.Sprintf("%s: %s between %s and %s after the beginning", b.Name, what, words.Moment(b.From), words.Moment(b.To))
		if b.Maybe != "" {
			s += "; " + b.Maybe
		}
		evidence = append(evidence, s)
	}
	return evidence
}

func lasting(b *Breach) bool { return b.Held }
func late(b *Breach) bool    { return !b.Held }
func whichever(*Breach) bool { return true }

// MoneyMissing: wallet and contracts lost some.
func MoneyMissing(all []Breach) []Finding {
	return withEvidence(Finding{Rule: "money-missing", Tone: Bad, Title: "Money is missing",
		Text:     fmt.Sprintf("Wallet and contracts together, with what was under way, fell and did not come back within %s and %d polls. In a closed system this sum is constant: a payment to anybody else, or money lost.", words.Moment(HeldSeconds), HeldPolls),
		Evidence: breaches(all, LawWealth, func(b *Breach) bool { return b.Held && b.Amount.Value < 0 })})
}

// MoneyCameIn: they have more.
func MoneyCameIn(all []Breach) []Finding {
	return withEvidence(Finding{Rule: "money-came-in", Tone: Neutral, Title: "Money came in",
		Text:     "Wallet and contracts together rose: somebody paid (a deposit, a block's reward), so the system is not closed, and money lost at the same time would not be seen.",
		Evidence: breaches(all, LawWealth, func(b *Breach) bool { return b.Held && b.Amount.Value > 0 })})
}

// MoneyUnderWay is of what the end came too soon for.
func MoneyUnderWay(all []Breach) []Finding {
	return withEvidence(Finding{Rule: "money-under-way", Tone: Neutral, Title: "Money was under way at the end",
		Text:     "The last polls do not account for this money. Too little time is left to tell whether it was in a transaction or is lost.",
		Evidence: append(breaches(all, LawWealth, late), breaches(all, LawSum, late)...)})
}

// MoneySum: spending is not the sum of its parts.
func MoneySum(all []Breach) []Finding {
	return withEvidence(Finding{Rule: "money-sum", Tone: Bad, Title: "Spending is not the sum of its parts",
		Text:     "By the system's own account, the total cost of its contracts and the sum of what it says it was for (fees, storage, upload, download, unspent) differ, by more than what moved between two calls: some money went to no purpose that is told, or a part is wrong.",
		Evidence: breaches(all, LawSum, lasting)})
}

// CounterFell is of readings that only grow.
func CounterFell(all []Breach) []Finding {
	return withEvidence(Finding{Rule: "counter-fell", Tone: Warn, Title: "A counter fell that must not",
		Text:     fmt.Sprintf("Totals only grow while a test stores and removes nothing. These fell, by more than %s, and stayed below: a daemon that began to count anew, or data that were lost.", words.Percent(FallShare)),
		Evidence: breaches(all, LawCounter, whichever)})
}

// ContractsLeft is of money that contracts took with them when they left the account,
// used or waiting to come back: it is not lost.
func ContractsLeft(all []Breach) []Finding {
	return withEvidence(Finding{Rule: "money-left", Tone: Neutral, Title: "Contracts took what they had used out of the account",
		Text:     "Contracts were renewed or ended, and the system does not tell what those had used (fees, storage, bandwidth). That money was paid, and is no loss; its amount is known only roughly, and a loss at the same moment would not be seen. Amounts of spending are at least what they say.",
		Evidence: breaches(all, LawLeft, whichever)},
		Finding{Rule: "money-waits", Tone: Neutral, Title: "Money of ended contracts had not come back",
			Text:     "Contracts were renewed or ended, and what they had not used is neither in the wallet nor in the contracts in use. It comes back some time after they end; in this test it did not yet.",
			Evidence: breaches(all, LawWaiting, whichever)})
}
