package words

import (
	"math"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                            "0 s",
		15:                           "15 ns",
		1500:                         "1.5 µs",
		999_999:                      "1 ms",
		1_534_567:                    "1.53 ms",
		40 * time.Millisecond:        "40 ms",
		123_400 * time.Microsecond:   "123 ms",
		999_600 * time.Microsecond:   "1 s",
		10 * time.Second:             "10 s",
		12_345 * time.Millisecond:    "12.3 s",
		59_970 * time.Millisecond:    "1 min",
		time.Minute:                  "1 min",
		60_500 * time.Millisecond:    "1 min 1 s",
		90 * time.Second:             "1 min 30 s",
		time.Hour - time.Millisecond: "1 h",
		90 * time.Minute:             "1 h 30 min",
		2*time.Hour + 5*time.Minute + 29*time.Second: "2 h 5 min",
		48*time.Hour - time.Second:                   "2 d",
		238 * time.Hour:                              "9 d 22 h",
		-90 * time.Second:                            "−1 min 30 s",
		math.MinInt64:                                "−106751 d 23 h",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
