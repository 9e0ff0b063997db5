package overhead

import (
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/mem"
)

// From mem through the scenario to the fit, again and again: A, R and B come
// back, with intervals that cover them as often as they promise.
func TestOverheadIntervalsCover(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates a hundred experiments")
	}
	const experiments, repeats = 100, 5
	sizes := []int64{1, 1000, 10_000, 60_000, 200_000}
	rtts := []time.Duration{0, 10 * time.Millisecond, 40 * time.Millisecond, 80 * time.Millisecond}
	covered := map[string]int{}
	scenariotest.Virtual(t, func(t *testing.T) {
		var cells []experiment.Cell
		for _, size := range sizes {
			cells = append(cells, cell("get", size, func(o *experiment.Overhead) { o.Count = 1 }))
		}
		rng := rand.New(rand.NewPCG(4, 4))
		for n := range experiments {
			a := time.Duration(rng.Float64() * float64(200*time.Millisecond))
			r, rate := float64(1+rng.IntN(9)), math.Pow(10, 4.5+2*rng.Float64())
			b := newBench(t, system.Options{
				"a": a.String(), "r": strconv.FormatFloat(r, 'g', -1, 64), "rate": strconv.Itoa(int(rate)), "dial": "1",
				"noise": strconv.FormatFloat(0.02+0.1*rng.Float64(), 'g', -1, 64), "seed": strconv.Itoa(n + 1), "cache": "true",
			}, scenariotest.Limits(), cells...)
			var points []stats.CostPoint
			for k, rtt := range rtts {
				b.node.Change(func(m *mem.Model) { m.RTT = rtt })
				for i, c := range cells {
					for range repeats {
						points = append(points, stats.CostPoint{
							RTT: rtt.Seconds(), Size: float64(c.Data.Size), Time: b.must(c).metrics["duration_p50"], Cell: k*len(cells) + i,
						})
					}
				}
			}
			m, err := stats.FitCost(points, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			for what, c := range map[string]struct {
				got  stats.Interval
				want float64
			}{"A": {m.A, a.Seconds()}, "R": {m.R, r}, "B": {m.B, 1 / math.Floor(rate)}} {
				if c.got.Contains(c.want) {
					covered[what]++
				}
			}
		}
	})
	for _, what := range []string{"A", "R", "B"} {
		t.Logf("%s is covered in %d of %d experiments", what, covered[what], experiments)
		if covered[what] < experiments*90/100 || covered[what] > experiments*99/100 {
			t.Errorf("%s: that is not 90 to 99 %%", what)
		}
	}
}
