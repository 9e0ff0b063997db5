package engine

import (
	"fmt"
	"math/big"
	"strings"
)

// maxSpend ends a trial when its system has used up enough money since it began.
// It compares exact amounts.
type maxSpend struct{ limit string } // in the currency

func (maxSpend) Name() string { return "max_spend" }

func (c maxSpend) Met(p progressSoFar) (string, bool) {
	if p.State == nil || p.State.Spent == nil {
		return "", false
	}
	limit, err := smallestUnits(c.limit, p.State.Decimals)
	if err != nil || p.State.Spent.Cmp(limit) < 0 {
		return "", false
	}
	return fmt.Sprintf("%s were spent since the trial began, the limit is %s", inCurrency(p.State.Spent, p.State.Decimals), c.limit), true
}

// smallestUnits is an amount of the experiment file in the smallest unit of a
// currency, of which 10^decimals make one; what is finer is cut off.
func smallestUnits(text string, decimals int) (*big.Int, error) {
	r, ok := new(big.Rat).SetString(strings.TrimSpace(text))
	if !ok || r.Sign() < 0 || strings.ContainsAny(text, "/eE") {
		return nil, fmt.Errorf("%q is no amount of money: want a number such as 500 or 0.25", text)
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)))
	return new(big.Int).Quo(r.Num(), r.Denom()), nil
}

// inCurrency is an amount of the smallest unit for people: four decimals.
func inCurrency(amount *big.Int, decimals int) string {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	text := new(big.Rat).SetFrac(amount, unit).FloatString(4)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
