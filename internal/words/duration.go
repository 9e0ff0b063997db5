package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a length of time in words for people, with three digits below a minute and
// two units from there on: "1.53 ms", "10 s", "1 min 30 s", "2 h 5 min", "9 d 22 h".
func Duration(d time.Duration) string {
	if d < 0 {
		return "−" + Duration(-max(d, math.MinInt64+1)) // the least has no opposite
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
	return inUnits(d.Round(time.Hour).Truncate(time.Hour), 24*time.Hour) // the longest is not rounded
}

// digits are three that count, without zeros at the end.
func digits(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return fmt.Sprintf("%.3g", v)
}

// inUnits writes whole seconds, in no larger unit than this one.
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
