package findings

import (
	"math"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/stats"
)

// digits is a number with three digits that count.
func digits(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// percent is a share in whole percent.
func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 0, 64) + " %" }

// percents is a share with its interval: "62 % (58…66 %)".
func percents(i stats.Interval) string {
	lo, hi := math.Round(100*i.Lo)+0, math.Round(100*i.Hi)+0 // no minus zero
	if !i.Bounded() || lo == hi {
		return percent(i.Mid)
	}
	return percent(i.Mid) + " (" + strings.ReplaceAll(strconv.FormatFloat(lo, 'f', 0, 64), "-", "−") + "…" + percent(i.Hi) + ")"
}

// list joins words: "a, b and c".
func list(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}
