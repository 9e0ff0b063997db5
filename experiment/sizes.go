package experiment

import (
	"fmt"
	"math"
	"math/big"
	"strings"
)

// SizeShare is a part of a mix of sizes.
type SizeShare struct {
	Share    Fraction // of the objects
	From, To Bytes    // log-uniform between the two, both included; equal for one size
}

// ParseMix reads shares of sizes such as "60% 2MiB..6MiB, 40% 20MiB".
func ParseMix(s string) ([]SizeShare, error) {
	var mix []SizeShare
	sum := new(big.Rat)
	for part := range strings.SplitSeq(s, ",") {
		words := strings.Fields(part)
		if len(words) != 2 {
			return nil, badUnit("each part is a share and a size, or a range of sizes: `60% 2MiB..6MiB`", "%q is not a part of a mix", strings.TrimSpace(part))
		}
		var m SizeShare
		if err := m.Share.parse(words[0]); err != nil {
			return nil, err
		}
		if m.Share == 0 {
			return nil, badUnit("take the part away", "a share of 0 in %q", strings.TrimSpace(part))
		}
		var err error
		if m.From, m.To, err = parseRange(words[1], true); err != nil {
			return nil, err
		}
		// The text, not the float: thirds of a percent shall add up.
		number, _, unit, _ := splitNumber(words[0])
		if unit == "" {
			number.Mul(number, big.NewRat(100, 1))
		}
		sum.Add(sum, number)
		mix = append(mix, m)
	}
	// Shares like 33.3% are meant to be thirds.
	if off, _ := new(big.Rat).Sub(sum, big.NewRat(100, 1)).Float64(); math.Abs(off) > 0.1+1e-9 {
		return nil, badUnit("let them add up to 100%", "the shares add up to %s%%", strings.TrimSuffix(strings.TrimRight(sum.FloatString(3), "0"), "."))
	}
	return mix, nil
}

func parseMixText(s string) (string, error) {
	mix, err := ParseMix(s)
	if err != nil {
		return "", err
	}
	parts := make([]string, len(mix))
	for i, m := range mix {
		parts[i] = m.Share.String() + " " + rangeText(m.From, m.To)
	}
	return strings.Join(parts, ", "), nil
}

// ParseSpread reads a range of sizes such as "1kB..1GB".
func ParseSpread(s string) (from, to Bytes, err error) {
	return parseRange(strings.TrimSpace(s), false)
}

func parseSpreadText(s string) (string, error) {
	from, to, err := ParseSpread(s)
	return rangeText(from, to), err
}

// parseRange reads "2MiB..6MiB", and "20MiB" where one size is allowed.
func parseRange(s string, one bool) (from, to Bytes, err error) {
	first, second, is := strings.Cut(s, "..")
	if !is {
		if a, b, dash := strings.Cut(s, "-"); dash && isSize(withUnitOf(a, b)) && isSize(b) {
			return 0, 0, badUnit("did you mean `"+withUnitOf(a, b)+".."+b+"`?", "%q is not a range of sizes", s)
		}
		if !one {
			return 0, 0, badUnit("write two sizes with two dots between them, such as `1kB..1GB`", "%q is not a range of sizes", s)
		}
	} else if full := withUnitOf(first, second); full != first && isSize(second) {
		// 2..6MiB is hardly meant to begin at two bytes.
		return 0, 0, badUnit("did you mean `"+full+".."+second+"`? else write `"+first+"B`", "in the range %q the first size has no unit", s)
	}
	if from, err = ParseBytes(first); err != nil {
		return 0, 0, err
	}
	to = from
	if is {
		if to, err = ParseBytes(second); err != nil {
			return 0, 0, err
		}
	}
	switch {
	case from == 0:
		return 0, 0, badUnit("at least 1B", "a size of 0 in %q", s)
	case to > maxSize:
		return 0, 0, badUnit("at most "+Bytes(maxSize).String(), "%s is out of limits", to)
	case to < from:
		return 0, 0, badUnit("did you mean `"+rangeText(to, from)+"`?", "the range %q ends before it begins", s)
	}
	return from, to, nil
}

func isSize(s string) bool {
	_, err := ParseBytes(s)
	return err == nil
}

// withUnitOf is the number a with the unit of b, where a has none and b has one.
func withUnitOf(a, b string) string {
	if _, _, unit, ok := splitNumber(b); ok && isDigits(strings.Replace(a, ".", "", 1)) {
		return a + unit
	}
	return a
}

// maxSize of one object, as in data.size.
const maxSize = 1 << 50

func rangeText(from, to Bytes) string {
	if from == to {
		return from.String()
	}
	return fmt.Sprintf("%s..%s", from, to)
}

// logUniformMean is the mean of a log-uniform size.
func logUniformMean(from, to Bytes) float64 {
	if from == to {
		return float64(from)
	}
	a, b := float64(from), float64(to)
	return (b - a) / math.Log(b/a)
}

// Known reports whether the sizes follow from the experiment alone; those of a
// directory or a trace are known once they are read.
func (d ResolvedData) Known() bool { return d.Directory == "" && d.Trace == "" }

// Given reports whether there is a data set at all.
func (d ResolvedData) Given() bool { return d.Source() != "" }

// Source is the key that says where the sizes come from: "size", "mix",
// "spread", "directory" or "trace"; empty where there are none.
func (d ResolvedData) Source() string {
	switch {
	case d.Mix != "":
		return "mix"
	case d.Spread != "":
		return "spread"
	case d.Directory != "":
		return "directory"
	case d.Trace != "":
		return "trace"
	case d.Size > 0:
		return "size"
	}
	return ""
}

// Total is the number of objects, copies included, and of their bytes (for mixes
// and spreads, what they have on average); 0 where it is not [ResolvedData.Known].
func (d ResolvedData) Total() (objects, bytes float64) {
	mean := float64(d.Size)
	switch d.Source() {
	case "mix":
		mix, err := ParseMix(d.Mix)
		if err != nil {
			return 0, 0
		}
		mean = 0
		sum := 0.0
		for _, m := range mix {
			mean += float64(m.Share) * logUniformMean(m.From, m.To)
			sum += float64(m.Share)
		}
		mean /= sum
	case "spread":
		from, to, err := ParseSpread(d.Spread)
		if err != nil {
			return 0, 0
		}
		mean = logUniformMean(from, to)
	case "directory", "trace", "":
		return 0, 0
	}
	objects = float64(d.Objects) * float64(max(1, d.Copies))
	return objects, objects * mean
}
