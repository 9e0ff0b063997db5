package findings

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/stats"
)

// Figures as a reader would write them: no exponents of counts, and no share that is
// all or nothing where it is not.
func TestWordsOfFigures(t *testing.T) {
	for got, want := range map[string]string{
		number(1000): "1000", number(1024): "1024", number(15.68): "15.7", number(0.0041): "0.00410",
		percents(stats.Interval{Mid: 0.997, Lo: 0.993, Hi: 1.001}): "99.7 % (99…100 %)",
		percents(stats.Interval{Mid: 0.003, Lo: -0.01, Hi: 0.01}):  "0.3 % (−1…1 %)",
		percents(stats.Interval{Mid: 0.62, Lo: 0.58, Hi: 0.66}):    "62 % (58…66 %)",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	rng := rand.New(rand.NewPCG(6, 6))
	said := SayBounds(Bound([]Shares{{System: "a", Line: around(rng, 6, 0.4, 0.01), Busiest: around(rng, 6, 1, 0.001)}}))
	if len(said) != 1 || !strings.Contains(said[0].Evidence[0], "1.0 CPUs kept busy") {
		t.Errorf("%+v", said)
	}
}
