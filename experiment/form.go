package experiment

import (
	"math/big"
	"regexp"
	"strings"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// Money is an exact amount in a system's currency, without its unit.
type Money string

var moneyRE = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

func (m *Money) parse(s string) error {
	s = strings.TrimSpace(s)
	if !moneyRE.MatchString(s) || len(s) > 60 {
		return notA("Money", s, "all its digits, without separators, exponent and currency")
	}
	amount, _ := new(big.Rat).SetString(s)
	*m = Money(words.Decimal(amount, len(s)))
	return nil
}

// PriceText is a [Price] as written in the file.
type PriceText string

func (t *PriceText) parse(s string) error {
	_, err := ParsePrice(s)
	*t = PriceText(strings.Join(strings.Fields(s), " "))
	return err
}

// Price is the price of one unit of a system's currency.
type Price struct {
	Each     *big.Rat // in Currency
	Currency string   // "USD"
}

var priceRE = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?)\s+([A-Za-z]+)(?:\s+.*)?$`)

// ParsePrice reads a price such as "0.014 USD (2018-06-01)".
func ParsePrice(s string) (Price, error) {
	m := priceRE.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil || len(m[1]) > 60 {
		return Price{}, notA("PriceText", s, "write the amount, the currency and where it is from")
	}
	each, _ := new(big.Rat).SetString(m[1])
	return Price{each, m[3]}, nil
}
