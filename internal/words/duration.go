package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

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
