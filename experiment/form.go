package experiment

import (
	"math/big"
	"regexp"
	"strings"
)

const (
	moneyPattern = `[0-9]+(\.[0-9]+)?`
	sizePattern  = `[0-9]+(\.[0-9]+)?(B|KiB|MiB|GiB|TiB|PiB|kB|KB|MB|GB|TB|PB)?`
)

// Money is an exact amount in a system's currency, without its unit.
type Money string

var moneyRE = regexp.MustCompile(`^` + moneyPattern + `$`)

func (m *Money) parse(s string) error {
	s = strings.TrimSpace(s)
	if !moneyRE.MatchString(s) || len(s) > 60 {
		return mistake("all its digits, without separators, exponent and currency", "%q is not %s", s,
			m.describe().noun)
	}
	if s = strings.TrimLeft(s, "0"); strings.Contains(s, ".") {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	if s == "" || s[0] == '.' {
		s = "0" + s
	}
	*m = Money(s)
	return nil
}

func (m Money) String() string { return string(m) }

func (Money) describe() scalarKind {
	return scalarKind{name: "money", noun: "an amount of money such as 3600 or 0.5", pattern: moneyRE.String(),
		doc: "An exact amount in the system's currency, without its unit: `3600`, `0.5`."}
}

// PriceText is a [Price] as the file has it.
type PriceText string

func (t *PriceText) parse(s string) error {
	_, err := ParsePrice(s)
	*t = PriceText(strings.Join(strings.Fields(s), " "))
	return err
}

func (t PriceText) String() string { return string(t) }

func (PriceText) describe() scalarKind {
	return scalarKind{name: "price", noun: "a price such as 0.014 USD (2018-06-01)",
		pattern: `^` + moneyPattern + `\s+[A-Za-z]+(\s+.*)?$`,
		doc:     "Amount, currency and source for one unit of the system's currency: `0.014 USD (2018-06-01)`."}
}

// Price is what one unit of a system's currency costs.
type Price struct {
	Each     *big.Rat // in Currency
	Currency string   // "USD"
}

var priceRE = regexp.MustCompile(`^(` + moneyPattern + `)\s+([A-Za-z]+)(?:\s+.*)?$`)

// ParsePrice reads a price such as "0.014 USD (2018-06-01)".
func ParsePrice(s string) (Price, error) {
	m := priceRE.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil || len(m[1]) > 60 {
		return Price{}, mistake("write the amount, the currency and where it is from", "%q is not %s", s,
			PriceText("").describe().noun)
	}
	each, _ := new(big.Rat).SetString(m[1])
	return Price{each, m[3]}, nil
}
