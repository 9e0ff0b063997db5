package experiment

import (
	"math/big"
	"strconv"
	"strings"
)

// Fraction is a share between 0 and 1.
type Fraction float64

func (f *Fraction) parse(s string) error {
	num, text, unit, ok := splitNumber(s)
	if !ok || unit != "" && unit != "%" {
		return badUnit(signHint(s, new(Fraction).parse), "%q is not %s", s, f.describe().noun)
	}
	if unit == "%" {
		num.Mul(num, big.NewRat(1, 100))
	}
	v, _ := ratFloat(num)
	if v > 1 {
		hint := "at most 100%"
		if unit == "" && v <= 100 {
			hint = "did you mean `" + text + "%`?"
		}
		return badUnit(hint, "%q is more than the whole", s)
	}
	if v > 0 && v < 1e-9 {
		return badUnit("at least 0.0000001%, or 0", "%q is too small", s)
	}
	*f = Fraction(v)
	return nil
}

// String is the percentage where it is exact and short, else the plain number.
func (f Fraction) String() string {
	plain := strconv.FormatFloat(float64(f), 'f', -1, 64)
	// The digits of the plain number, moved by two places: no rounding.
	r, ok := new(big.Rat).SetString(plain)
	if !ok || len(plain) > 30 {
		return plain
	}
	text := r.Mul(r, big.NewRat(100, 1)).FloatString(max(0, len(plain)-4))
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	var back Fraction
	if back.parse(text+"%") != nil || back != f {
		return plain
	}
	return text + "%"
}

func (Fraction) describe() scalarKind {
	return scalarKind{
		name:    "share",
		noun:    "a share such as 1% or 0.01",
		unit:    "ratio",
		pattern: `^[0-9]+(\.[0-9]+)?%?$`,
		doc:     "A share of the whole: `1%` or `0.01`.",
	}
}
