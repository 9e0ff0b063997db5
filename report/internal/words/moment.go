package words

import (
	"fmt"
	"unicode/utf8"
)

// Moment is a time of many hours, such as that since the beginning of a test:
// "3 d 4:05 h".
func Moment(seconds float64) string {
	s := int64(seconds)
	switch {
	case seconds < 120:
		return Show(seconds, "s")
	case s < 86400:
		return fmt.Sprintf("%d:%02d h", s/3600, s/60%60)
	}
	return fmt.Sprintf("%d d %d:%02d h", s/86400, s/3600%24, s/60%60)
}

// Clip is the beginning of a text, of at most n letters.
func Clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
