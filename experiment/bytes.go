package experiment

import (
	"math/big"
	"strconv"
	"strings"
)

// Bytes is a size in bytes. It is written with a unit that says whether it is
// binary (KiB, MiB: powers of 1024) or decimal (kB, MB: powers of 1000).
type Bytes int64

type unitSize struct {
	name string
	size int64
}

var binaryUnits = []unitSize{{"PiB", 1 << 50}, {"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
var decimalUnits = []unitSize{{"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}}

// ParseBytes reads a size such as 10MiB, 10MB, 512B or 512. A unit that could
// be either binary or decimal (10M) is refused.
func ParseBytes(s string) (Bytes, error) {
	var b Bytes
	err := b.parse(s)
	return b, err
}

func (b *Bytes) parse(s string) error {
	num, text, unit, ok := splitNumber(s)
	if !ok {
		return badUnit(signHint(s, new(Bytes).parse), "%q is not %s", s, b.describe().noun)
	}
	factor := int64(0)
	if unit == "" || unit == "B" {
		factor = 1
	}
	for _, u := range append(binaryUnits, decimalUnits...) {
		if unit == u.name || unit == "KB" && u.name == "kB" {
			factor = u.size
		}
	}
	if factor == 0 {
		return badUnit(sizeHint(s, text, unit), "%q is not %s", s, b.describe().noun)
	}
	num.Mul(num, new(big.Rat).SetInt64(factor))
	if !num.IsInt() {
		return badUnit("", "%q is not a whole number of bytes", s)
	}
	if !num.Num().IsInt64() {
		return badUnit("at most 8191PiB", "%q is too large", s)
	}
	*b = Bytes(num.Num().Int64())
	return nil
}

// sizeHint says what was probably meant.
func sizeHint(s, num, unit string) string {
	if h := signHint(s, new(Bytes).parse); h != "" {
		return h
	}
	lower := strings.ToLower(unit)
	if strings.Contains(lower, "bit") || strings.HasSuffix(lower, "bps") || strings.HasSuffix(lower, "/s") {
		return "that is a rate; a size is in bytes, such as 10MiB"
	}
	if len(lower) == 1 && strings.Contains("kmgtp", lower) {
		var bin, dec unitSize
		for i := range binaryUnits {
			if strings.ToLower(binaryUnits[i].name[:1]) == lower {
				bin, dec = binaryUnits[i], decimalUnits[i]
			}
		}
		hint := "binary or decimal? write `" + num + bin.name + "` (× " + strconv.FormatInt(bin.size, 10) + ") or `" + num + dec.name + "` (× " + strconv.FormatInt(dec.size, 10) + ")"
		if unit == "m" {
			hint += "; a duration does not belong here"
		}
		return hint
	}
	for _, u := range append(binaryUnits, decimalUnits...) {
		if lower == strings.ToLower(u.name) || lower+"b" == strings.ToLower(u.name) {
			return "did you mean `" + num + u.name + "`?"
		}
	}
	return "units are B, KiB, MiB, GiB, TiB, PiB (binary) and kB, MB, GB, TB, PB (decimal)"
}

// String is the shortest exact way to write b, binary when both are as short;
// it always says which of the two it is.
func (b Bytes) String() string {
	best := strconv.FormatInt(int64(b), 10) + "B"
	bestDigits := len(best) - 1
	for _, units := range [][]unitSize{binaryUnits, decimalUnits} {
		for _, u := range units {
			if b != 0 && int64(b)%u.size == 0 {
				if n := strconv.FormatInt(int64(b)/u.size, 10); len(n) < bestDigits {
					best, bestDigits = n+u.name, len(n)
				}
				break
			}
		}
	}
	return best
}

func (Bytes) describe() scalarKind {
	return scalarKind{
		name:    "size",
		noun:    "a size such as 10MiB",
		unit:    "B",
		pattern: `^` + sizePattern + `$`,
		doc:     "A number of bytes with a unit that says whether it is binary (`KiB`, `MiB`, `GiB`, `TiB`, `PiB`: powers of 1024) or decimal (`kB`, `MB`, `GB`, `TB`, `PB`: powers of 1000): `10MiB`, `1.5GB`, `512B`, `512`. `10M` is refused, because it could be either.",
	}
}
