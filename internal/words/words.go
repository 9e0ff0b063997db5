// Package words formats numbers for reports: three significant digits, SI prefixes, digits in
// groups of three.
package words

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Quantity formats a value as a short number with three significant digits, and returns it with its
// unit and SI prefix. Bytes are decimal (1 MB = 10^6 B), like the rates of links.
func Quantity(v float64, unit string) (number, suffix string) {
	if math.IsNaN(v) {
		return "–", ""
	}
	if math.IsInf(v, 0) {
		return "∞", ""
	}
	switch unit {
	case "ratio":
		return Digits(v*100, 3), "%"
	case "s/GB":
		return Digits(v, 3), "CPU s/GB"
	case "s", "1/s", "B", "B/s", "bit/s":
		p := prefixOf(v, unit)
		return Digits(v/p.Scale, 3), p.Name + strings.TrimPrefix(unit, "1")
	case "1":
		if v == math.Trunc(v) && math.Abs(v) < 1e6 { // a count
			return strconv.FormatFloat(v+0, 'f', 0, 64), "" // +0 turns minus zero into 0
		}
		return Digits(v, 3), ""
	}
	return Digits(v, 3), unit
}

// Prefix is a unit's prefix and its factor.
type Prefix struct {
	Scale float64
	Name  string
}

// Prefixes returns the prefixes for values of a unit, the largest first.
func Prefixes(unit string) []Prefix {
	if unit == "s" {
		return timePrefixes
	}
	return bigPrefixes
}

var (
	bigPrefixes  = []Prefix{{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}
	timePrefixes = []Prefix{{1, ""}, {1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}}
)

// prefixOf returns the prefix for a value.
func prefixOf(v float64, unit string) Prefix {
	all := Prefixes(unit)
	// 0.9995 prevents "1000 ms" instead of "1 s".
	i := slices.IndexFunc(all, func(p Prefix) bool { return math.Abs(v) >= p.Scale*0.9995 })
	switch {
	case v == 0:
		return Prefix{1, ""}
	case i < 0:
		return all[len(all)-1]
	}
	return all[i]
}

// Digits formats v with n significant digits, never in exponent form within 10^-6 … 10^12, and
// never with fewer than its integer digits.
func Digits(v float64, n int) string {
	if v == 0 {
		return "0" // also for minus zero
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
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

// Show formats a value with its unit: "11.8 MB/s".
func Show(v float64, unit string) string {
	n, s := Quantity(v, unit)
	if s == "" || s == "×" {
		return n + s
	}
	return n + " " + s
}

// Bytes formats a number of bytes: "11.8 MB".
func Bytes(n float64) string { return Show(n, "B") }

// Conversion returns the factor from the base unit to the unit in which v is written.
func Conversion(v float64, unit string) float64 {
	switch unit {
	case "ratio":
		return 100
	case "s", "1/s", "B", "B/s", "bit/s":
		return 1 / prefixOf(v, unit).Scale
	}
	return 1
}

// Percent formats a share: "12 %", "0.4 %", "< 0.1 %"; negative: "−12 %".
func Percent(share float64) string {
	switch p := share * 100; {
	case math.IsNaN(p):
		return "–"
	case p == 0:
		return "0 %"
	case p > -0.1 && p < 0:
		return "> −0.1 %"
	case p < 0:
		return "−" + Percent(-share)
	case p < 0.1:
		return "< 0.1 %"
	case p > 99.9 && p < 100:
		return "> 99.9 %"
	case p < 10 && math.Abs(p-math.Round(p)) > 0.05, p > 99 && p < 100:
		return strconv.FormatFloat(p, 'f', 1, 64) + " %"
	default:
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
}

// Count formats an integer with its digits in groups of three: "12,345".
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural formats a number of things: "1 file", "1,200 files".
func Plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}

// List joins words: "a, b and c".
func List(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// Capital returns a text with a capital first letter.
func Capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Range formats a value with its interval in one unit: "11.8 (11.6–12.0) MB/s". An interval that is
// not finite is omitted.
func Range(v, lo, hi float64, unit string) string {
	known := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
	if !known(v) {
		return "–"
	}
	if !known(lo) || !known(hi) {
		return Show(v, unit)
	}
	_, suffix := Quantity(v, unit)
	f := Conversion(v, unit)
	between := " (" + Digits(lo*f, 3) + "–" + Digits(hi*f, 3) + ")"
	if suffix == "×" {
		return Digits(v*f, 3) + suffix + between
	}
	return strings.TrimSpace(Digits(v*f, 3) + between + " " + suffix)
}

// Some lists the first three elements and the number of the others.
func Some(all []string) string {
	if len(all) > 3 {
		return strings.Join(all[:3], "; ") + "; and " + Count(int64(len(all)-3)) + " more"
	}
	return strings.Join(all, "; ")
}

// Wrap breaks text into lines of at most width characters, with the prefix first on the first line
// and later on the others.
func Wrap(first, later, text string, width int) []string {
	var lines []string
	line := first
	for i, word := range strings.Fields(text) {
		if i > 0 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), later
		} else if i > 0 {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
