package experiment

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
)

// A form is what a text must look like (the tag form): parse checks one and
// returns it in its canonical way of writing.
type form struct {
	kind  scalarKind
	parse func(text string) (string, error)
}

const (
	moneyPattern = `[0-9]+(\.[0-9]+)?`
	sizePattern  = `[0-9]+(\.[0-9]+)?(B|KiB|MiB|GiB|TiB|PiB|kB|KB|MB|GB|TB|PB)?`
)

// formOf is the form of that name.
func formOf(name string) form {
	switch name {
	case "money":
		return form{scalarKind{name: "money", noun: "an amount of money such as 3600 or 0.5", pattern: `^` + moneyPattern +
			`$`,
			doc: "An exact amount in the system's currency, without its unit: `3600`, `0.5`."}, parseMoney}
	case "budget":
		return form{scalarKind{name: "budget", noun: "an amount of money such as 3600, or all", pattern: `^(all|` +
			moneyPattern + `)$`,
			doc: "An amount of money, or `all`."}, parseBudget}
	case "price":
		return form{scalarKind{name: "price", noun: "a price such as 0.014 USD (2018-06-01)", pattern: `^` + moneyPattern +
			`\s+[A-Za-z]+(\s+.*)?$`,
			doc: "Amount, currency and source for one unit of the system's currency: `0.014 USD (2018-06-01)`."}, parsePriceText}
	}
	panic(fmt.Sprintf("experiment: no form is named %q", name))
}

var moneyRE = regexp.MustCompile(`^` + moneyPattern + `$`)

func parseMoney(s string) (string, error) {
	s = strings.TrimSpace(s)
	if !moneyRE.MatchString(s) || len(s) > 60 {
		return "", badUnit("all its digits, without separators, exponent and currency", "%q is not %s", s,
			formOf("money").kind.noun)
	}
	whole, part, _ := strings.Cut(s, ".")
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	if part = strings.TrimRight(part, "0"); part != "" {
		whole += "." + part
	}
	return whole, nil
}

func parseBudget(s string) (string, error) {
	if s == "all" {
		return s, nil
	}
	m, err := parseMoney(s)
	if m == "0" {
		return "", badUnit("take the key away to leave the budget as it is", "a budget of 0 cannot pay for anything")
	}
	return m, err
}

// Price is what one unit of a system's currency costs.
type Price struct {
	Each     *big.Rat // in Currency
	Currency string   // "USD"
	Source   string   // its date or source, without parentheses; may be empty
}

var priceRE = regexp.MustCompile(`^(` + moneyPattern + `)\s+([A-Za-z]+)(?:\s+(.*))?$`)

// ParsePrice reads a price such as "0.014 USD (2018-06-01)".
func ParsePrice(s string) (Price, error) {
	m := priceRE.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil || len(m[1]) > 60 {
		return Price{}, badUnit("write the amount, the currency and where it is from", "%q is not %s", s,
			formOf("price").kind.noun)
	}
	each, _ := new(big.Rat).SetString(m[1])
	source := strings.TrimSpace(m[4])
	if strings.HasPrefix(source, "(") && strings.HasSuffix(source, ")") {
		source = source[1 : len(source)-1]
	}
	return Price{each, m[3], source}, nil
}

func parsePriceText(s string) (string, error) {
	_, err := ParsePrice(s)
	return strings.Join(strings.Fields(s), " "), err
}
