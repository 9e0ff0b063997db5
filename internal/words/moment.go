package words

import (
	"math"
	"time"
	"unicode/utf8"
)

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
