package words

import (
	"math"
	"testing"
)

func TestMoment(t *testing.T) {
	for seconds, want := range map[float64]string{0: "0 s", 59.2: "59.2 s", 90: "1 min 30 s", 179: "2 min 59 s",
		3599: "59 min 59 s", 3600: "1 h", 3725: "1 h 2 min 5 s", 86340: "23 h 59 min", 86399: "1 d",
		273900: "3 d 4 h 5 min", 1e12: "1000000000000 s"} {
		if got := Moment(seconds); got != want {
			t.Errorf("%v s: %q, want %q", seconds, got, want)
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

// Nothing that a recording may hold, by a fault or on purpose, stops a report.
func TestTimesThatAreNone(t *testing.T) {
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
