package experiment

import (
	"math/big"
	"strconv"
)

// OpRate is a rate of operations per second.
type OpRate float64

var opUnits = map[string]int64{"/s": 1, "/m": 60, "/h": 3600}

func (r *OpRate) parse(s string) error {
	num, text, unit, ok := splitNumber(s)
	if !ok {
		return badUnit(signHint(s, new(OpRate).parse), "%q is not %s", s, r.describe().noun)
	}
	per, ok := opUnits[unit]
	if !ok {
		hint := signHint(s, new(OpRate).parse)
		if hint == "" {
			hint = "write `" + text + "/s`, `" + text + "/m` or `" + text + "/h`"
		}
		return badUnit(hint, "%q is not %s", s, r.describe().noun)
	}
	v, ok := ratFloat(num.Mul(num, big.NewRat(1, per)))
	if !ok || v > 1e9 {
		return badUnit("at most 1000000000/s", "%q is too large", s)
	}
	if v == 0 {
		return badUnit("", "a rate of 0 never starts an operation")
	}
	if v < 1e-6 {
		return badUnit("at least 0.01/h", "%q is too small", s)
	}
	*r = OpRate(v)
	return nil
}

// String is the rate per second.
func (r OpRate) String() string {
	return strconv.FormatFloat(float64(r), 'f', -1, 64) + "/s"
}

func (OpRate) describe() scalarKind {
	return scalarKind{
		name:    "arrival rate",
		noun:    "a rate of operations such as 100/s",
		unit:    "1/s",
		pattern: `^[0-9]+(\.[0-9]+)?/[smh]$`,
		doc:     "Operations per second, minute or hour: `100/s`, `90/m`, `12/h`.",
	}
}
