package words

import (
	"math"
	"time"
	"unicode/utf8"
)

// longest is how many seconds are written in larger units: a century. A recording that
// says more is broken.
const longest = 100 * 365.25 * 86400

// Span is a length of time in words: that of [Duration], with three digits below
// ten seconds. What is no number of seconds, or beyond a century, is written as it is.
func Span(seconds float64) string {
	if !(seconds >= 10 && seconds <= longest) {
		return Show(seconds, "s")
	}
	return Duration(time.Duration(seconds * float64(time.Second)))
}

// Moment is a time since the beginning of a test, or one between two of them: to the
// second below two hours and to the minute from there on, by which it can be found in
// a log: "2 min 59 s", "3 d 4 h 5 min".
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

// Clip is the beginning of a text, of at most n letters; 0: all of it.
func Clip(s string, n int) string {
	if n == 0 || utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
