package words

import (
	"math"
	"testing"
	"time"
)

// TestNumbers checks that no text contains a minus zero, that small negative shares differ from
// small positive ones, and that no recorded number, faulty or malicious, stops a report.
func TestNumbers(t *testing.T) {
	zero := math.Copysign(0, -1)
	for _, c := range [][2]string{
		{Percent(zero), "0 %"},
		{Percent(-1e-9), "> −0.1 %"},
		{Percent(-0.12), "−12 %"},
		{Percent(0.0001), "< 0.1 %"},
		{Percent(0.9999), "> 99.9 %"},
		{Percent(1.02), "102 %"},
		{Show(0.99996, "ratio"), "> 99.9 %"},
		{Show(0.9994, "ratio"), "99.9 %"},
		{Show(1, "ratio"), "100 %"},
		{Digits(zero, 3), "0"},
		{Digits(-1.5, 3), "-1.50"},
		{Show(zero, "1"), "0"},
		{Show(zero, "s"), "0 s"},
		{Show(zero, "×"), "0×"},

		{Money(69.31, "SC"), "69.31 SC"},
		{Money(-69.31, "SC"), "-69.31 SC"},
		{Money(12345.6, "SC"), "12,345 SC"},
		{Money(3.5e8, "SC"), "350 million SC"},
		{Money(2e9, "SC"), "2.00 billion SC"},

		{Duration(0), "0 s"},
		{Duration(15), "15 ns"},
		{Duration(1500), "1.5 µs"},
		{Duration(999_999), "1 ms"},
		{Duration(1_534_567), "1.53 ms"},
		{Duration(40 * time.Millisecond), "40 ms"},
		{Duration(123_400 * time.Microsecond), "123 ms"},
		{Duration(999_600 * time.Microsecond), "1 s"},
		{Duration(10 * time.Second), "10 s"},
		{Duration(12_345 * time.Millisecond), "12.3 s"},
		{Duration(59_970 * time.Millisecond), "1 min"},
		{Duration(time.Minute), "1 min"},
		{Duration(60_500 * time.Millisecond), "1 min 1 s"},
		{Duration(90 * time.Second), "1 min 30 s"},
		{Duration(time.Hour - time.Millisecond), "1 h"},
		{Duration(90 * time.Minute), "1 h 30 min"},
		{Duration(2*time.Hour + 5*time.Minute + 29*time.Second), "2 h 5 min"},
		{Duration(48*time.Hour - time.Second), "2 d"},
		{Duration(238 * time.Hour), "9 d 22 h"},
		{Duration(-90 * time.Second), "−1 min 30 s"},
		{Duration(math.MinInt64), "−106751 d 23 h"},

		{Moment(0), "0 s"},
		{Moment(59.2), "59.2 s"},
		{Moment(90), "1 min 30 s"},
		{Moment(179), "2 min 59 s"},
		{Moment(3599), "59 min 59 s"},
		{Moment(3600), "1 h"},
		{Moment(3725), "1 h 2 min 5 s"},
		{Moment(86340), "23 h 59 min"},
		{Moment(86399), "1 d"},
		{Moment(273900), "3 d 4 h 5 min"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
	for _, c := range []struct {
		seconds float64
		want    string
	}{{math.NaN(), "–"}, {math.Inf(1), "∞"}, {math.Inf(-1), "∞"}, {1e12, "1000000000000 s"}, {-1e300, "-1.00e+300 s"},
		{math.MinInt64, "-9.22e+18 s"}, {-5, "-5.00 s"}} {
		for _, got := range []string{Span(c.seconds), Moment(c.seconds)} {
			if got != c.want {
				t.Errorf("%v: %q, want %q", c.seconds, got, c.want)
			}
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"äöü", 3, "äöü"}, {"äöüß", 3, "äö…"}, {"", 3, ""}, {"äöüß", 0, "äöüß"}} {
		if got := Clip(c.text, c.n); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}
