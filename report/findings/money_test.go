package findings

import (
	"math"
	"strings"
	"testing"
)

// siacoins are an amount with its price.
func siacoins(v float64) Sum {
	return Sum{Value: v, Currency: "SC", In: v * 0.014, Other: "USD"}
}

func moneyCases() map[string]example {
	change := func(law string, amount float64, held bool) Breach {
		return Breach{Name: "siad", Law: law, Reading: "wallet.balance", Amount: siacoins(amount), Fell: -amount, Held: held, From: 3600, To: 3780}
	}
	missing, gained, soon := change(LawWealth, -50, true), change(LawWealth, 50, true), change(LawWealth, -50, false)
	parts, fell := change(LawSum, -50, true), change(LawCounter, -50, true)
	left, waiting := change(LawLeft, -50, true), change(LawWaiting, -50, true)
	of := func(look func([]Breach) []Finding, is Breach, not ...Breach) example {
		return when(look, []Breach{is}, not)
	}
	return map[string]example{
		"money-missing":   of(MoneyMissing, missing, gained, soon, parts, fell, left, waiting),
		"money-came-in":   of(MoneyCameIn, gained, missing, change(LawWealth, 50, false)),
		"money-under-way": of(MoneyUnderWay, soon, missing, parts, left),
		"money-sum":       of(MoneySum, parts, missing, change(LawSum, -50, false)),
		"counter-fell":    of(CounterFell, fell, missing, parts, left),
		"money-left":      of(ContractsLeft, left, waiting, missing, fell),
		"money-waits":     of(ContractsLeft, waiting, left, missing, fell),
		"money-unnamed":   when(MoneyUnnamed, []Unnamed{{"siad", siacoins(3), 0.16, 0.05}}, []Unnamed{{"siad", siacoins(0), math.NaN(), math.NaN()}}),
		"money-unspent":   when(MoneyUnspent, []Unspent{{"siad", siacoins(30), 0.3}}, []Unspent{{"siad", siacoins(3), 0.03}}),
	}
}

func TestBreachesInWords(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		said []Finding
		want string
	}{
		{MoneyMissing([]Breach{{Name: "siad", Law: LawWealth, Amount: siacoins(-69.31), Held: true, From: 3600, To: 3780, Maybe: "contracts were formed then"}}), "siad: 69.31 SC (0.970 USD) between 1 h and 1 h 3 min after the beginning; contracts were formed then"},
		{CounterFell([]Breach{{Name: "siad", Law: LawCounter, Reading: "storage.absolute.bytes", Amount: Sum{Value: nan}, Fell: 4e9, Unit: "B", Counts: true, From: 60, To: 240}}), "siad: storage.absolute.bytes fell by 4.00 GB between 1 min and 4 min after the beginning"},
		{CounterFell([]Breach{{Name: "siad", Law: LawCounter, Reading: "spent.fees", Amount: Sum{Value: -2, Currency: "SC", In: nan}, Counts: true, From: 60, To: 90}}), "siad: spent.fees fell by 2.000 SC between 1 min and 1 min 30 s after the beginning"},
		{MoneyUnnamed([]Unnamed{{"siad", siacoins(3), 0.16, 0.05}}), "siad: 3.000 SC (0.0420 USD) at the end, 16 % of the cost of data (± 5 % of that is allowed for)"},
		{MoneyUnspent([]Unspent{{"siad", siacoins(30), 0.3}, {"sia", siacoins(1), nan}}), "siad: 30.00 SC (0.420 USD), 30 % of all that contracts cost"},
	} {
		if len(c.said) != 1 || strings.Join(c.said[0].Evidence, "|") != c.want {
			t.Errorf("%+v, want %q", c.said, c.want)
		}
	}
	if got := (Sum{Value: nan}).Words(); got != "–" {
		t.Errorf("an unknown amount is %q", got)
	}
}
