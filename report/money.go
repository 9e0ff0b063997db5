package report

import (
	"math/big"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// Money is what a load test cost, by the system's own account. Amounts are
// decimal, exact, in the system's currency.
type Money struct {
	Currency string     `json:"currency"`
	Price    string     `json:"price,omitempty"` // what one unit of it costs, as the experiment states it
	In       string     `json:"in,omitempty"`    // the currency of that price
	Source   string     `json:"source,omitempty"`
	Whole    bool       `json:"whole"`    // amounts count from the system's own beginning; false: from the first poll
	AtLeast  bool       `json:"at_least"` // contracts left the system's account during the test, and it does not tell what they had used: amounts are at least these
	Kinds    []Spending `json:"kinds"`
	Spent    Amount     `json:"spent"`    // by the system's total, what is unspent in contracts included
	Used     Amount     `json:"used"`     // without it
	Wallet   Amount     `json:"wallet"`   // at the end
	Begun    Amount     `json:"begun"`    // the wallet at the first poll
	PerFile  Amount     `json:"per_file"` // used, for each object stored
	// What storing costs: fees and storage for each TB (10^12 file bytes) and
	// month of contract, as the study has it; and with the bandwidth.
	PerTBMonth    Amount `json:"per_tb_month"`
	WithBandwidth Amount `json:"per_tb_month_with_bandwidth"`
	Months        Num    `json:"months"` // assumed length of a contract
}

// Spending is the money that went to one purpose.
type Spending struct {
	Kind   string `json:"kind"`
	Amount Amount `json:"amount"`
	Share  Num    `json:"share"` // of all that is spent, the unspent included
}

// Amount is an amount of money: exactly, and in the currency of the price.
type Amount struct {
	Exact string `json:"exact"` // decimal; empty: not known
	Value Num    `json:"value"`
	In    Num    `json:"in"`
}

// amount tells an exact amount of the smallest unit, and at a price, if one is stated.
func (w *watch) amount(v *big.Rat, p experiment.Price) Amount {
	if v == nil || w.decimals < 0 {
		return Amount{Value: unknown, In: unknown}
	}
	unit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(w.decimals)), nil))
	in := new(big.Rat).Quo(v, unit)
	a := Amount{Exact: decimal(in, w.decimals), In: unknown}
	f, _ := in.Float64()
	a.Value = Num(f)
	if p.Each != nil {
		g, _ := new(big.Rat).Mul(in, p.Each).Float64()
		a.In = Num(g)
	}
	return a
}

// decimal is a number with as many decimals as it needs, at most so many.
func decimal(v *big.Rat, most int) string {
	s := v.FloatString(most)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func ratOf(v *big.Int) *big.Rat {
	if v == nil {
		return nil
	}
	return new(big.Rat).SetInt(v)
}
