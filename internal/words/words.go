// Package words formats numbers for reports: three significant digits, SI prefixes, digits in
// groups of three.
package words

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// quantity formats a value as a short number with three significant digits, and returns it with its
// unit and SI prefix. Bytes are decimal (1 MB = 10^6 B), like the rates of links.
func quantity(v float64, unit string) (number, suffix string) {
	if math.IsNaN(v) {
		return "–", ""
	}
	if math.IsInf(v, 0) {
		return "∞", ""
	}
	switch unit {
	case "ratio":
		if v >= 0.9995 && v < 1 { // not all
			return "> 99.9", "%"
		}
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
		return []Prefix{{1, ""}, {1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}}
	}
	return []Prefix{{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}
}

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
	n, s := quantity(v, unit)
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
	_, suffix := quantity(v, unit)
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

// Duration formats a duration for people, with three digits below a minute and two units above:
// "1.53 ms", "10 s", "1 min 30 s", "2 h 5 min", "9 d 22 h".
func Duration(d time.Duration) string {
	if d < 0 {
		return "−" + Duration(-max(d, math.MinInt64+1)) // the smallest duration has no negation
	}
	switch s := d.Seconds(); {
	case d == 0:
		return "0 s"
	case d < time.Microsecond:
		return strconv.FormatInt(d.Nanoseconds(), 10) + " ns"
	case s < 0.9995e-3:
		return digits(1e6*s) + " µs"
	case s < 0.9995:
		return digits(1e3*s) + " ms"
	case s < 59.95:
		return digits(s) + " s"
	case d < time.Hour-time.Second/2:
		return inUnits(d.Round(time.Second), time.Minute)
	case d < 48*time.Hour-time.Minute/2:
		return inUnits(d.Round(time.Minute), time.Hour)
	}
	return inUnits(d.Round(time.Hour).Truncate(time.Hour), 24*time.Hour) // Round does not round the longest durations
}

// digits formats v with three significant digits, without trailing zeros.
func digits(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return fmt.Sprintf("%.3g", v)
}

// inUnits formats a number of whole seconds with units up to largest.
func inUnits(d, largest time.Duration) string {
	var parts []string
	for _, u := range []struct {
		long time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := d / u.long; u.long <= largest && n > 0 {
			parts, d = append(parts, fmt.Sprintf("%d %s", n, u.name)), d%u.long
		}
	}
	return strings.Join(parts, " ")
}

// longest is the largest number of seconds that is written in larger units: a century. A longer
// time in a recording is an error.
const longest = 100 * 365.25 * 86400

// Span formats a duration like [Duration], but with three digits below ten seconds. Numbers that
// are not finite or exceed a century stay in seconds.
func Span(seconds float64) string {
	if !(seconds >= 10 && seconds <= longest) {
		return Show(seconds, "s")
	}
	return Duration(time.Duration(seconds * float64(time.Second)))
}

// Moment formats a time since the start of a test, or the difference of two such times, rounded to
// seconds below two hours and to minutes above, so that it can be found in a log: "2 min 59 s", "3
// d 4 h 5 min".
func Moment(seconds float64) string {
	if !(seconds >= 60 && seconds <= longest) {
		return Span(seconds)
	}
	step := 1.0
	if seconds >= 7200 {
		step = 60
	}
	return inUnits(time.Duration(math.Round(seconds/step)*step)*time.Second, 24*time.Hour)
}

// Clip returns the beginning of a text with at most n characters; 0: the whole text.
func Clip(s string, n int) string {
	if n == 0 || utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// Decimal formats a number with at most that many decimals, at least one, and without trailing zeros.
func Decimal(v *big.Rat, most int) string {
	return strings.TrimSuffix(strings.TrimRight(v.FloatString(most), "0"), ".")
}

// Money formats an amount of a currency: "69.3 SC", "350 million $".
func Money(v float64, currency string) string {
	switch size := max(v, -v); {
	case size >= 1e9:
		return Digits(v/1e9, 3) + " billion " + currency
	case size >= 1e7:
		return Digits(v/1e6, 3) + " million " + currency
	case size >= 1e4:
		return Count(int64(v)) + " " + currency
	}
	return Digits(v, 4) + " " + currency
}
