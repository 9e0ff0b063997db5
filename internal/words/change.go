package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Signed is a ratio as a change in percent, without the sign of percent: "−76".
func Signed(ratio float64) string {
	p := (ratio - 1) * 100
	n := 0
	if math.Abs(p) < 9.95 {
		n = 1
	}
	s := strconv.FormatFloat(math.Abs(p), 'f', n, 64)
	s = strings.TrimSuffix(s, ".0")
	switch {
	case s == "0":
		return "0"
	case p < 0:
		return "−" + s
	}
	return "+" + s
}

// vague is the ratio of the ends of an interval from which on it says nothing.
const vague = 100

// Gain is a ratio of times with its interval, the smaller change first: "−76 %
// (−74…−78)"; one above 3 is a multiple. An interval that
// says nothing is "n too small".
func Gain(v, lo, hi float64) string {
	known := func(x float64) bool { return x-x == 0 }
	switch {
	case !known(v):
		return "–"
	case known(lo) && known(hi) && (lo <= 0 || hi > vague*lo):
		return "n too small"
	case v > 3:
		return Range(v, lo, hi, "×")
	}
	s := Signed(v)
	if !known(lo) || !known(hi) {
		return s + " %"
	}
	near, far := lo, hi
	if hi < 1 {
		near, far = hi, lo
	}
	return fmt.Sprintf("%s %% (%s…%s)", s, Signed(near), Signed(far))
}
