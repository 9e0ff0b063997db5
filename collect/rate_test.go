package collect

import (
	"math"
	"testing"
)

// TestRate checks that growth is attributed to the time in which something was stored, however far
// apart the polls are.
func TestRate(t *testing.T) {
	at := func(start, end, value float64) Reported { return Reported{start, end, value} }
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		name          string
		reported      []Reported
		from, to      float64
		value, lo, hi float64 // value NaN: not determined; no bounds: no result
	}{
		{"a poll soon after a short test", []Reported{at(0, 1, 5), at(13, 13.5, 305)}, 10, 13, 100, 300 / 3.5, 100},
		{"that of a minute later cannot tell when it came", []Reported{at(0, 1, 5), at(60, 61, 305)}, 10, 13, nan,
			300. / 51, 100},
		{"nor can still later ones, which see nothing more", []Reported{at(0, 1, 0), at(60, 61, 300),
			at(600, 601, 300)}, 10, 13, nan, 300. / 51, 100},
		{"all but little was seen within", []Reported{at(0, 1, 0), at(12, 13, 290), at(60, 61, 300)}, 10, 13, 100,
			290. / 3, 100},
		{"accepted at once, and sent on for a minute", []Reported{at(0, 1, 0), at(12, 13, 50), at(60, 61, 600)}, 10,
			13, nan, 50. / 3, 200},
		{"earlier ones see nothing", []Reported{at(0, 1, 7), at(5, 6, 7), at(13, 13.5, 307)}, 10, 13, 100, 300 / 3.5,
			100},
		{"polls beside it bound it from below", []Reported{at(0, 1, 0), at(20, 21, 100), at(80, 81, 700),
			at(120, 121, 900)}, 10, 100, 10, 900. / 111, 10},
		{"no poll after: up to the last one", []Reported{at(0, 1, 0), at(59, 61, 500)}, 10, 100, 10, 500. / 51,
			500. / 49},
		{"no poll before: from the first one", []Reported{at(19, 21, 100), at(105, 106, 900)}, 10, 100, 10, 800. / 87,
			800. / 79},
		{"all of the polls", []Reported{at(0, 2, 0), at(50, 51, 3), at(100, 102, 1000)}, -inf, inf, 10, 1000. / 102,
			1000. / 98},
		{"it fell", []Reported{at(0, 1, 500), at(13, 13.5, 200)}, 10, 13, -100, -100, -300 / 3.5},
		{"nothing came", []Reported{at(0, 1, 500), at(60, 61, 500)}, 10, 13, 0, 0, 0},
		{"one poll", []Reported{at(0, 1, 5)}, 10, 13, nan, 0, 0},
		{"no time", []Reported{at(0, 1, 5), at(60, 61, 305)}, 10, 10, nan, 0, 0},
		{"all polls after it", []Reported{at(60, 61, 5), at(70, 71, 305)}, 10, 13, nan, 0, 0},
	} {
		value, lo, hi := Rate(c.reported, c.from, c.to)
		ok := !math.IsNaN(lo)
		if ok != (c.lo != 0 || c.hi != 0 || c.value == 0) {
			t.Errorf("%s: ok is %v", c.name, ok)
		}
		if math.IsNaN(c.value) != math.IsNaN(value) || ok &&
			(math.Abs(value-c.value) > 1e-9 || math.Abs(lo-c.lo) > 1e-9 || math.Abs(hi-c.hi) > 1e-9) {
			t.Errorf("%s: %v, from %v to %v; want %v, from %v to %v", c.name, value, lo, hi, c.value, c.lo, c.hi)
		}
	}
}
