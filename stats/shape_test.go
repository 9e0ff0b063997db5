package stats

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

var timeouts = []float64{10, 2, 60, 30, 180, 5} // not in order

func shapeTrials(r *rand.Rand, truth func(timeout float64) float64, noise func(*rand.Rand, []int) float64) []ShapeObs {
	var obs []ShapeObs
	for b := range 5 {
		shift := math.Exp(0.2 * r.NormFloat64())
		for l, v := range timeouts {
			obs = append(obs, ShapeObs{Level: l, Block: b, Value: 100 * shift * truth(v) * noise(r, []int{l, 2})})
		}
	}
	return obs
}

func u(v float64) float64       { return math.Exp(0.3 * math.Abs(math.Log(v/20))) }
func falling(v float64) float64 { return max(1, u(min(v, 20))) }
func rising(v float64) float64  { return max(1, u(max(v, 20))) }
func flat(float64) float64      { return 1 }

func TestShape(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for want, c := range map[string]struct {
		truth func(float64) float64
		noise float64
	}{
		UShape: {u, 0.02}, FallingShape: {falling, 0.02}, RisingShape: {rising, 0.02}, FlatShape: {flat, 0.005}, UnknownShape: {flat, 0.3},
	} {
		fit, err := Shape(timeouts, shapeTrials(r, c.truth, lognormal(c.noise)), 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if fit.Shape != want {
			t.Errorf("%s, want %s: %s", fit.Shape, want, fit.Why)
		}
		if want == UShape {
			if l := fit.Levels[fit.Lowest]; l.At != 10 && l.At != 30 || fit.Levels[0].At != 2 || fit.Levels[5].At != 180 || fit.From < 2 || fit.To > 3 {
				t.Errorf("lowest at %v, from %d to %d", l.At, fit.From, fit.To)
			}
			if l := fit.Levels[0]; math.Abs(l.Ratio.Mid/(u(2)/u(fit.Levels[fit.Lowest].At))-1) > 0.1 {
				t.Errorf("at 2 s: %v times", l.Ratio.Mid)
			}
		}
	}
}

func TestShapeErrors(t *testing.T) {
	one := []ShapeObs{{Value: 1}}
	for want, c := range map[string]struct {
		levels []float64
		obs    []ShapeObs
	}{
		"no trials": {timeouts, nil}, "twice": {[]float64{1, 1}, one}, "finite": {[]float64{math.NaN()}, one},
		"level 1 of 1": {[]float64{1}, []ShapeObs{{Level: 1, Value: 1}}}, "no logarithm": {[]float64{1}, []ShapeObs{{Value: -1}}},
	} {
		if _, err := Shape(c.levels, c.obs, 0.95); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestShapeSeesNoUInWhatOnlyFalls, in 95 of a hundred experiments, and sees one
// where there is one.
func TestShapeSeesNoUInWhatOnlyFalls(t *testing.T) {
	for _, noise := range trialNoises {
		t.Run(noise.name, func(t *testing.T) {
			t.Parallel()
			said := func(truth func(float64) float64, shape string) float64 {
				return share(15, func(r *rand.Rand, _ int) bool {
					fit, err := Shape(timeouts, shapeTrials(r, truth, noise.draw), 0.95)
					if err != nil {
						t.Fatal(err)
					}
					return fit.Shape == shape
				})
			}
			for _, truth := range []func(float64) float64{falling, rising, flat} {
				if got := said(truth, UShape); got > 0.05+simulationError(0.05) {
					t.Errorf("a U is seen in %.4f where there is none", got)
				}
			}
			if got := said(u, UShape); noise.name == "normal" && got < 0.9 {
				t.Errorf("a U is seen in %.4f", got)
			}
		})
	}
}
