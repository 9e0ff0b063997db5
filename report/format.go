package report

import (
	"math"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
)

// The package words prints numbers; these are its functions by their short names.

func quantity(v float64, unit string) (number, suffix string) { return words.Quantity(v, unit) }
func conversion(v float64, unit string) float64               { return words.Conversion(v, unit) }
func digits(v float64, n int) string                          { return words.Digits(v, n) }
func show(v float64, unit string) string                      { return words.Show(v, unit) }
func exact(v float64, unit string) string                     { return words.Exact(v, unit) }
func percent(share float64) string                            { return words.Percent(share) }
func count(n int64) string                                    { return words.Count(n) }
func plural(n int64, one, many string) string                 { return words.Plural(n, one, many) }
func list(all []string) string                                { return words.List(all) }
func capital(s string) string                                 { return words.Capital(s) }
func clip(s string, n int) string                             { return words.Clip(s, n) }
func moment(seconds Num) string                               { return words.Moment(float64(seconds)) }
func span(seconds float64) string                             { return words.Span(seconds) }
func moneyWords(v float64, currency string) string            { return words.Money(v, currency) }
func signed(ratio float64) string                             { return words.Signed(ratio) }

func gain(v, lo, hi Num) string { return words.Gain(float64(v), float64(lo), float64(hi)) }

func showRange(v, lo, hi Num, unit string) string {
	return words.Range(float64(v), float64(lo), float64(hi), unit)
}

// fewestForPlusMinus is how many trials an interval needs to be told as ±: five
// have 94 % confidence, four 87 %.
const fewestForPlusMinus = 5

// plusMinus is the larger half of an interval as a share of the median: "± 2 %".
// Beyond the median itself such a share says nothing that can be pictured, and the
// interval is told instead, in the unit in which the median is shown: "(0.1–70)".
func plusMinus(s Summary, unit string) string {
	m := float64(s.Median)
	if s.N < fewestForPlusMinus || m == 0 || math.IsNaN(m) || math.IsInf(m, 0) {
		return "" // no interval worth the sign, which a note says, or none that is a share of the median
	}
	if !s.Lo.Known() || !s.Hi.Known() {
		return "± ∞"
	}
	off := max(float64(s.Hi)-m, m-float64(s.Lo)) / math.Abs(m)
	if off > 1 {
		f := conversion(m, unit)
		return "(" + digits(float64(s.Lo)*f, 3) + "–" + digits(float64(s.Hi)*f, 3) + ")"
	}
	return "± " + percent(off)
}

// better says in words which way a metric improves, if any.
func better(b record.Better) string {
	switch b {
	case record.Higher:
		return "higher is better"
	case record.Lower:
		return "lower is better"
	}
	return "for information"
}
