package findings

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Unnamed is what a system spends in step with its data and enters under no purpose.
type Unnamed struct {
	Name   string
	Amount Sum     // at the end
	Share  float64 // of what storing and moving data cost; NaN: there is no such spending
	Off    float64 // by this share of itself it is allowed to be off
}

// MostUnnamed is the most that is taken for it. In recordings of siad 1.5.9 on a
// network with the dev constants it is 16 %: sectors are small and cheap there, so that
// the request itself weighs more.
const MostUnnamed = 0.25

// MoneyUnnamed names it: it is no part that is missing.
func MoneyUnnamed(all []Unnamed) []Finding {
	f := Finding{Rule: "money-unnamed", Tone: Neutral, Title: "A little of the spending has no purpose",
		Text: fmt.Sprintf("The total grew by more than its parts, in step with what storing and moving data cost. siad 1.5.9 does so: it pays hosts for each request and a little above their prices, and enters neither under a purpose. Up to %s of the cost of data is allowed for in this way; what goes beyond the share that is seen would be a finding.", words.Percent(MostUnnamed))}
	for _, u := range all {
		if !(u.Share > 0) {
			continue
		}
		f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s at the end, %s of the cost of data (± %s of that is allowed for)", u.Name, u.Amount.Words(), words.Percent(u.Share), words.Percent(u.Off)))
	}
	return withEvidence(f)
}

// Unspent is what lay unspent in the contracts of a load test at its end.
type Unspent struct {
	Name   string
	Amount Sum
	Share  float64 // of all that contracts cost; NaN: not known
}

// unspentShare is the share of all spending from which on what lies unspent is named:
// contracts are always bought for a little more than is used.
const unspentShare = 0.1

// MoneyUnspent names what is bound.
func MoneyUnspent(all []Unspent) []Finding {
	f := Finding{Rule: "money-unspent", Tone: Neutral, Title: "Contracts were bought and not used up",
		Text: "This money lay unspent in contracts at the end. It is assumed to come back when they end; until then it is bound."}
	for _, u := range all {
		if u.Share >= unspentShare {
			f.Evidence = append(f.Evidence, fmt.Sprintf("%s: %s, %s of all that contracts cost", u.Name, u.Amount.Words(), words.Percent(u.Share)))
		}
	}
	return withEvidence(f)
}
