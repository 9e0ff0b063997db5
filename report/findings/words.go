package findings

import (
	"math"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/stats"
)

// number is one without a unit, with three digits that count.
func number(v float64) string { return words.Show(v, "1") }

// percents is a share with its interval in whole percent: "62 % (58…66 %)".
func percents(i stats.Interval) string {
	lo, hi := math.Round(100*i.Lo)+0, math.Round(100*i.Hi)+0 // no minus zero
	if !i.Bounded() || lo == hi {
		return words.Percent(i.Mid)
	}
	return words.Percent(i.Mid) + " (" + strings.ReplaceAll(strconv.FormatFloat(lo, 'f', 0, 64), "-", "−") + "…" + strconv.FormatFloat(hi, 'f', 0, 64) + " %)"
}
