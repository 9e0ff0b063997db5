package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var quantities = []string{"files", "bytes", "hours"}

// designed is an experiment that puts many small files, then few large ones,
// then waits, so many times over.
func designed(n, cycles int) [][]float64 {
	x := make([][]float64, 3)
	files, bytes := 0.0, 0.0
	for i := range n {
		switch i * 3 * cycles / n % 3 {
		case 0:
			files++
			bytes += 0.01
		case 1:
			files += 0.01
			bytes++
		}
		x[0], x[1], x[2] = append(x[0], files), append(x[1], 1e6*bytes), append(x[2], float64(i)/60)
	}
	return x
}

// ordinary is a load test: bytes as files, and time a curve of both, since
// each put takes longer than the last.
func ordinary(r *rand.Rand, n int) [][]float64 {
	x := make([][]float64, 3)
	bytes, hours := 0.0, 0.0
	for i := range n {
		bytes += 1e6 * math.Exp(0.5*r.NormFloat64())
		hours += (1 + 2*float64(i)/float64(n)) / 60
		x[0], x[1], x[2] = append(x[0], float64(i+1)), append(x[1], bytes), append(x[2], hours)
	}
	return x
}

var causes = []struct {
	name string
	by   []string
	y    func(files, bytes, hours float64) float64 // of each over its range
}{
	{"none", nil, func(_, _, _ float64) float64 { return 1 }},
	{"files", quantities[:1], func(f, _, _ float64) float64 { return 1 + 2*f }},
	{"bytes", quantities[1:2], func(_, b, _ float64) float64 { return 1 + 2*b }},
	{"hours", quantities[2:], func(_, _, h float64) float64 { return 1 + 2*h }},
	{"files and bytes", quantities[:2], func(f, b, _ float64) float64 { return 1 + 2*f + 2*b }},
	{"bytes and hours", quantities[1:], func(_, b, h float64) float64 { return 1 + 2*b + 2*h }},
	{"exponential in files", quantities[:1], func(f, _, _ float64) float64 { return math.Exp(3 * f) }},
	{"exponential in hours", quantities[2:], func(_, _, h float64) float64 { return math.Exp(3 * h) }},
	{"saturating in bytes", quantities[1:2], func(_, b, _ float64) float64 { return 3 - 2*math.Exp(-4*b) }},
	{"square of files", quantities[:1], func(f, _, _ float64) float64 { return 1 + 3*f*f }},
}

// caused is y by a cause, with noise.
func caused(x [][]float64, y func(f, b, h float64) float64, e []float64, cv float64) []float64 {
	return factors(len(e), func(i int) float64 {
		over := func(q int) float64 { return x[q][i] / x[q][len(e)-1] }
		return y(over(0), over(1), over(2)) * math.Exp(cv*e[i])
	})
}

type attributionRates struct{ right, part, wrong, untold, series, covered, intervals int }

func simulateAttribution(t testing.TB, cause int, cycles int, phi, cv float64, n, times int) attributionRates {
	var rates attributionRates
	c := causes[cause]
	r := rand.New(rand.NewPCG(uint64(n), uint64(cause)))
	for range times {
		x := ordinary(r, n)
		if cycles > 0 {
			x = designed(n, cycles)
		}
		a, err := Attribute(caused(x, c.y, autoregression(r, n, phi, normal), cv), quantities, x)
		if err != nil {
			t.Fatal(err)
		}
		rates.series++
		foreign := slices.ContainsFunc(a.By, func(name string) bool { return !slices.Contains(c.by, name) })
		count(&rates.untold, !a.Told)
		count(&rates.right, a.Told && slices.Equal(a.By, c.by))
		count(&rates.wrong, a.Told && foreign)
		count(&rates.part, a.Told && !foreign && !slices.Equal(a.By, c.by))
		if cause <= 5 { // straight lines: the moves are known
			for i, e := range a.Effects {
				want := 0.0
				if slices.Contains(c.by, quantities[i]) {
					want = 2
				}
				rates.intervals++
				count(&rates.covered, e.Moves.Contains(want))
			}
		}
	}
	return rates
}

func (r attributionRates) String() string {
	return fmt.Sprintf("right %.1f %%, part %.1f %%, wrong %.1f %%, untold %.1f %%, moves covered %.1f %%",
		percent(r.right, r.series), percent(r.part, r.series), percent(r.wrong, r.series), percent(r.untold, r.series), percent(r.covered, r.intervals))
}

func TestAttributionOfADesignedSequence(t *testing.T) {
	for k, cause := range causes {
		t.Run(cause.name, func(t *testing.T) {
			t.Parallel()
			var wrong, covered, intervals, series int
			for _, phi := range []float64{0, 0.7} {
				for _, cv := range []float64{0.05, 0.3} {
					for _, n := range []int{60, 300, 2000} {
						r := simulateAttribution(t, k, 2, phi, cv, n, long(3))
						t.Logf("phi %v, cv %v, n %d: %v", phi, cv, n, r)
						wrong += r.wrong
						covered += r.covered
						intervals += r.intervals
						series += r.series
						// What has flattened is soon lost in noise that drifts: it may stay untold.
						flat := phi > 0 && cause.name == "saturating in bytes"
						if cv == 0.05 && n == 2000 && !flat && r.right < r.series*8/10 {
							t.Errorf("phi %v, n %d: %v", phi, n, r)
						}
					}
				}
			}
			t.Logf("wrong %d of %d, covered %d of %d", wrong, series, covered, intervals)
			if limit := 0.05 + 3*math.Sqrt(0.05*0.95/float64(series)); float64(wrong) > limit*float64(series) {
				t.Errorf("attributed to something else in %d of %d", wrong, series)
			}
			if limit := 0.9 - 3*math.Sqrt(0.1*0.9/float64(max(intervals, 1))); float64(covered) < limit*float64(intervals) {
				t.Errorf("%d of %d intervals cover", covered, intervals)
			}
		})
	}
}

// Files, bytes and time rise together: nothing can be told, except that
// nothing changes.
func TestAttributionOfAnOrdinaryLoadTest(t *testing.T) {
	for k, cause := range causes {
		t.Run(cause.name, func(t *testing.T) {
			t.Parallel()
			for _, n := range []int{60, 300, 2000} {
				r := simulateAttribution(t, k, 0, 0, 0.05, n, long(4))
				if r.untold < r.series && k > 0 {
					t.Errorf("n %d: %v", n, r)
				}
				if k == 0 && r.right < r.series*7/10 {
					t.Errorf("n %d: %v", n, r)
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(1, 1))
	x := ordinary(r, 500)
	a, err := Attribute(caused(x, causes[1].y, autoregression(r, 500, 0, normal), 0.05), quantities, x)
	if err != nil || a.Told || len(a.By) > 0 || !strings.Contains(a.Why, "rise together") || !strings.Contains(a.Why, "files and bytes: correlation 0.99") {
		t.Errorf("%+v, %v", a, err)
	}
	for _, e := range a.Effects {
		if !(e.VIF > 1000) {
			t.Errorf("%s: inflation %v", e.Name, e.VIF)
		}
	}
}

func TestAttributionSaysWhatItCannotTell(t *testing.T) {
	up := factors(100, func(i int) float64 { return float64(i) })
	flat := make([]float64, 100)
	for name, c := range map[string]struct {
		y     []float64
		names []string
		x     [][]float64
	}{
		"names":         {up, quantities, [][]float64{up}},
		"nothing":       {up, nil, nil},
		"lengths":       {up, quantities[:1], [][]float64{up[1:]}},
		"infinite":      {append(slices.Clone(up[1:]), math.Inf(1)), quantities[:1], [][]float64{up}},
		"nothing moves": {up, quantities[:1], [][]float64{flat}},
	} {
		if a, err := Attribute(c.y, c.names, c.x); err == nil || !strings.HasPrefix(err.Error(), "attribute: ") {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	a, err := Attribute(up, quantities, [][]float64{up, up, flat})
	if err != nil || a.Told || !strings.Contains(a.Why, "exact proportion") || !strings.Contains(a.Why, "correlation 1.0000") || len(a.Effects) != 3 {
		t.Errorf("in proportion: %+v, %v", a, err)
	}
	a, err = Attribute(up[:10], quantities, designed(10, 1))
	if err != nil || a.Told || !strings.Contains(a.Why, "10 points") {
		t.Errorf("ten points: %+v, %v", a, err)
	}
	// A quantity that does not vary is no cause, and does not stand in the way.
	r := rand.New(rand.NewPCG(1, 2))
	x := designed(600, 2)
	x[1] = flatOf(600)
	a, err = Attribute(caused(designed(600, 2), causes[1].y, autoregression(r, 600, 0, normal), 0.05), quantities, x)
	if err != nil || !a.Told || !slices.Equal(a.By, quantities[:1]) || a.Effects[1].P != 1 || a.Effects[1].Interval.Warn != "it does not vary" {
		t.Errorf("two that vary: %+v, %v", a, err)
	}
	if e := a.Effects[0]; e.Shape != "linear" || math.Abs(e.Slope*x[0][599]/2-1) > 0.2 || !e.Interval.Contains(e.Slope) || e.Moves.Lo <= 0 {
		t.Errorf("the effect of files: %+v", e)
	}
}

func flatOf(n int) []float64 { return factors(n, func(int) float64 { return 7 }) }

// BenchmarkSimulatedAttribution gives the rates of docs/methodology.md: run it
// with -benchtime=1x.
func BenchmarkSimulatedAttribution(b *testing.B) {
	for range b.N {
		for _, cycles := range []int{0, 1, 2, 3} {
			for k, cause := range causes {
				for _, phi := range []float64{0, 0.7} {
					for _, n := range []int{300, 2000} {
						b.Logf("%d cycles, %s, phi %v, n %d: %v", cycles, cause.name, phi, n, simulateAttribution(b, k, cycles, phi, 0.1, n, 12))
					}
				}
			}
		}
	}
}

func BenchmarkAttribute(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	const n = 50_000
	x := designed(n, 2)
	y := caused(x, causes[6].y, autoregression(r, n, 0.7, normal), 0.1)
	for range b.N {
		if _, err := Attribute(y, quantities, x); err != nil {
			b.Fatal(err)
		}
	}
}
