package experiment

import (
	"math/big"
	"strconv"
	"strings"
)

// BitRate is a rate in bits per second; 0 is unlimited. Its units are decimal.
type BitRate float64

var bitUnits = []struct {
	name string
	size int64
}{{"Tbit", 1e12}, {"Gbit", 1e9}, {"Mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}}

// ParseBitRate reads a rate such as 1Gbit, 100Mbit/s, 10Gbps or unlimited.
func ParseBitRate(s string) (BitRate, error) {
	var r BitRate
	err := r.parse(s)
	return r, err
}

func (r *BitRate) parse(s string) error {
	if s == "unlimited" {
		*r = 0
		return nil
	}
	num, text, unit, ok := splitNumber(s)
	if !ok {
		return badUnit(signHint(s, new(BitRate).parse), "%q is not %s", s, r.describe().noun)
	}
	base := strings.TrimSuffix(unit, "/s")
	if strings.HasSuffix(unit, "bps") {
		base = strings.TrimSuffix(unit, "bps") + "bit"
	}
	for _, u := range bitUnits {
		if base == u.name || base == "Kbit" && u.name == "kbit" {
			f, ok := ratFloat(num.Mul(num, new(big.Rat).SetInt64(u.size)))
			if !ok || f > 1e15 {
				return badUnit("write `unlimited` for no limit", "%q is too large", s)
			}
			if f == 0 {
				return badUnit("write `unlimited` for no limit", "a rate of 0 lets nothing through")
			}
			if f < 1 {
				return badUnit("at least 1bit", "%q is too small", s)
			}
			*r = BitRate(f)
			return nil
		}
	}
	return badUnit(rateHint(s, num, text, unit), "%q is not %s", s, r.describe().noun)
}

// rateHint says what was probably meant: most often bits were mistaken for bytes.
func rateHint(s string, num *big.Rat, text, unit string) string {
	if h := signHint(s, new(BitRate).parse); h != "" {
		return h
	}
	size := strings.TrimSuffix(unit, "/s")
	if strings.HasSuffix(size, "B") {
		var b Bytes
		// Only to compute the same rate in bits; what cannot be read gets no number.
		if b.parse(text+size) == nil && b > 0 && b < 1e14 {
			return "rates are in bits per second; " + b.String() + "/s is `" + BitRate(8*float64(b)).String() + "`"
		}
		return "rates are in bits per second, such as 100Mbit"
	}
	if unit == "" {
		return "add a unit: `" + text + "Mbit` or `" + text + "bit`"
	}
	lower := strings.ToLower(unit)
	for _, u := range bitUnits {
		if u.size > 1 && (lower == strings.ToLower(u.name) || lower == strings.ToLower(u.name[:1]) || lower == strings.ToLower(u.name[:1])+"b/s") {
			return "did you mean `" + text + u.name + "`?"
		}
	}
	return "units are bit, kbit, Mbit, Gbit, Tbit, powers of 1000, per second"
}

// String is the rate with the largest unit in which it is at least 1.
func (r BitRate) String() string {
	if r == 0 {
		return "unlimited"
	}
	for _, u := range bitUnits {
		text := strconv.FormatFloat(float64(r)/float64(u.size), 'f', -1, 64) + u.name
		var back BitRate
		// Dividing may round: then a smaller unit is exact.
		if float64(r) >= float64(u.size) && back.parse(text) == nil && back == r {
			return text
		}
	}
	return strconv.FormatFloat(float64(r), 'f', -1, 64) + "bit"
}

func (BitRate) describe() scalarKind {
	return scalarKind{
		name:    "rate",
		noun:    "a rate such as 100Mbit",
		unit:    "bit/s",
		pattern: `^(unlimited|[0-9]+(\.[0-9]+)?(bit|[kKMGT]bit|bit/s|[kKMGT]bit/s|bps|[kKMGT]bps))$`,
		doc:     "Bits per second with decimal units: `1Gbit` (also `1Gbit/s`, `1Gbps`), `100Mbit`, `512kbit`, or `unlimited`. `100MB` is refused: that would be bytes.",
	}
}
