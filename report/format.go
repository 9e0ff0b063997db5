package report

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// Numbers are shown with three significant digits and an SI prefix. Bytes are
// decimal (1 MB = 10^6 B), because rates of links are.

// quantity splits a value of a unit into a short number and its unit.
func quantity(v float64, unit string) (number, suffix string) {
	if math.IsNaN(v) {
		return "–", ""
	}
	if math.IsInf(v, 0) {
		return "∞", ""
	}
	switch unit {
	case "ratio":
		return digits(v*100, 3), "%"
	case "s":
		return scaled(v, "s", timePrefixes)
	case "s/GB":
		return digits(v, 3), "CPU s/GB"
	case "1/s":
		n, s := scaled(v, "", bigPrefixes)
		return n, s + "/s"
	case "B", "B/s", "bit/s":
		return scaled(v, unit, bigPrefixes)
	case "×":
		return digits(v, 3), "×"
	case "1":
		if v == math.Trunc(v) && math.Abs(v) < 1e6 { // a count
			return strconv.FormatFloat(v, 'f', 0, 64), ""
		}
		return digits(v, 3), ""
	}
	return digits(v, 3), unit
}

type prefix struct {
	scale float64
	name  string
}

var (
	bigPrefixes  = []prefix{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}
	timePrefixes = []prefix{{1, ""}, {1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}}
)

func scaled(v float64, unit string, table []prefix) (string, string) {
	if v == 0 {
		return "0", unit
	}
	p := table[len(table)-1]
	for _, q := range table {
		// 0.9995 keeps "1000 ms" from appearing where "1 s" is meant.
		if math.Abs(v) >= q.scale*0.9995 {
			p = q
			break
		}
	}
	return digits(v/p.scale, 3), p.name + unit
}

// digits prints v with n significant digits, never in exponent form within
// 10^-6 … 10^12, and never fewer than its integer digits.
func digits(v float64, n int) string {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	e := int(math.Floor(math.Log10(math.Abs(v))))
	if r := math.Pow(10, float64(e+1)); math.Abs(v) >= r-r/math.Pow(10, float64(n))/2 {
		e++
	}
	if e < -6 || e > 12 {
		return strconv.FormatFloat(v, 'e', n-1, 64)
	}
	return strconv.FormatFloat(v, 'f', max(0, n-1-e), 64)
}

// show prints a value with its unit: "11.8 MB/s".
func show(v float64, unit string) string {
	n, s := quantity(v, unit)
	switch s {
	case "":
		return n
	case "×":
		return n + s
	}
	return n + " " + s
}

// exact prints a value that was asked for, not measured: "1 Gbit/s", "20 ms".
func exact(v float64, unit string) string {
	if v == 0 {
		return show(v, unit)
	}
	_, suffix := quantity(v, unit)
	return strconv.FormatFloat(v*conversion(v, unit), 'g', 6, 64) + " " + suffix
}

// showRange prints a value with its interval, in one unit: "11.8 (11.6–12.0) MB/s".
func showRange(v, lo, hi Num, unit string) string {
	if !v.Known() {
		return "–"
	}
	if !lo.Known() || !hi.Known() {
		return show(float64(v), unit)
	}
	_, suffix := quantity(float64(v), unit)
	f := conversion(float64(v), unit)
	between := " (" + digits(float64(lo)*f, 3) + "–" + digits(float64(hi)*f, 3) + ")"
	if suffix == "×" {
		return digits(float64(v), 3) + suffix + between
	}
	return strings.TrimSpace(digits(float64(v)*f, 3) + between + " " + suffix)
}

// conversion is the factor from the base unit to the one in which v is shown.
func conversion(v float64, unit string) float64 {
	switch unit {
	case "ratio":
		return 100
	case "s":
		return 1 / prefixFor(v, timePrefixes)
	case "B", "B/s", "bit/s", "1/s":
		return 1 / prefixFor(v, bigPrefixes)
	}
	return 1
}

func prefixFor(v float64, table []prefix) float64 {
	if v == 0 {
		return 1
	}
	for _, q := range table {
		if math.Abs(v) >= q.scale*0.9995 {
			return q.scale
		}
	}
	return table[len(table)-1].scale
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

func percent(share float64) string {
	switch p := share * 100; {
	case math.IsNaN(p):
		return "–"
	case p == 0:
		return "0 %"
	case p < 0.1:
		return "< 0.1 %"
	case p < 10 && math.Abs(p-math.Round(p)) > 0.05:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	case p > 99.9 && p < 100:
		return "> 99.9 %"
	case p > 99 && p < 100:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	default:
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
}

// count prints an integer in groups of three: "12,345".
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

func span(seconds float64) string {
	if seconds < 10 {
		return show(seconds, "s")
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
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

// list joins words: "a, b and c".
func list(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

// capital is a text with a capital first letter.
func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
