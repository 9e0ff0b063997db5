package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func logs(ratios ...float64) []float64 {
	for i := range ratios {
		ratios[i] = math.Log(ratios[i])
	}
	return ratios
}

// The textbook's example (Hollander, Wolfe and Chicken, table 3.1: depression scores) has a
// two-sided p of 0.0391, the estimate −0.46 and the interval −0.786 to −0.010 at 96.1 %.
func TestPairedRatioOfTheTextbook(t *testing.T) {
	x := []float64{1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30}
	y := []float64{0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29}
	d := make([]float64, len(x))
	for i := range x {
		d[i] = y[i] - x[i]
	}
	i, p := PairedRatio(d, 0.95)
	near(t, "p", p, 20.0/512)
	near(t, "estimate", math.Log(i.Mid), -0.46)
	near(t, "lower end", math.Log(i.Lo), -0.786)
	near(t, "upper end", math.Log(i.Hi), -0.010)
	near(t, "confidence", i.Conf, 1-20.0/512)
}

// The interval excludes 1 exactly if the test rejects it, with ties, zeros and any number of pairs.
func TestPairedIntervalAndTestAgree(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	apart := 0
	for n := range 80 {
		for k := range 40 {
			d := make([]float64, n+1)
			for i := range d {
				d[i] = 0.02*float64(k%5) + 0.05*rng.NormFloat64()
				if k%2 == 0 {
					d[i] = math.Round(20*d[i]) / 20
				}
				if k%20 == 19 && i == 0 {
					d[i] = math.Inf(-1)
				}
			}
			i, p := PairedRatio(d, 0.95)
			if (p <= 0.05) != !i.Contains(1) || !i.Contains(i.Mid) {
				t.Fatalf("%v: %+v, p = %v", d, i, p)
			}
			count(&apart, p <= 0.05)
		}
	}
	if apart < 100 {
		t.Errorf("%d differ", apart)
	}
}

func TestPairedRatioOfFew(t *testing.T) {
	for n, want := range map[int]float64{1: 1, 2: 0.5, 5: 0.0625, 6: 0.03125, 8: 0.0078125} {
		d := slices.Repeat([]float64{math.Log(0.9)}, n)
		i, p := PairedRatio(d, 0.95)
		if p != want || p != LeastPairedP(n) || i.Bounded() != (n >= leastBlocks) || math.Abs(i.Mid-0.9) > 1e-12 {
			t.Errorf("%d pairs: %+v, p = %v", n, i, p)
		}
	}
	if i, p := PairedRatio(slices.Repeat([]float64{math.Inf(-1)}, 6), 0.95); i.Mid != 0 || i.Hi != 0 || p != 2.0/64 {
		t.Errorf("nothing was delivered: %+v, p = %v", i, p)
	}
	if i, p := PairedRatio(nil, 0.95); !math.IsNaN(i.Mid) || !math.IsNaN(p) {
		t.Errorf("no pairs: %+v, p = %v", i, p)
	}
	// Mean and standard deviation of the logarithms, and Student's 97.5 % of 3 degrees of freedom.
	i, p := StudentRatio(logs(0.9, 0.92, 0.88, 0.9), 0.95)
	near(t, "Student's lower end", i.Lo, math.Exp(-0.10548400-3.18244631*0.01814792/2))
	if !(i.Hi < 1 && p < 0.01) {
		t.Errorf("four pairs: %+v, p = %v", i, p)
	}
	if i, p := StudentRatio(logs(0.5, 0.5, 0.5, 0.5), 0.95); i.Lo != 0.5 || i.Hi != 0.5 || p != 0 {
		t.Errorf("no noise: %+v, p = %v", i, p)
	}
	if i, p := StudentRatio(logs(0, 0.5, 0.5, 0.5), 0.95); i.Bounded() || !math.IsNaN(p) {
		t.Errorf("one value of 0: %+v, p = %v", i, p)
	}
}

// pairNoises are distributions of the noise of values.
var pairNoises = map[string]func(*rand.Rand) float64{
	"lognormal": func(r *rand.Rand) float64 { return math.Exp(0.1 * r.NormFloat64()) },
	"skewed":    func(r *rand.Rand) float64 { return 1 + r.ExpFloat64() },
	"heavy":     func(r *rand.Rand) float64 { return math.Exp(0.05 * r.NormFloat64() / math.Sqrt(r.ExpFloat64())) },
	"uniform":   func(r *rand.Rand) float64 { return 0.5 + r.Float64() },
}

// Blocks vary by 25 %: a system that is 10 % slower in each block is found, identical systems
// seldom differ, and the interval contains the truth.
func TestPairedRatioInBlocksThatVary(t *testing.T) {
	for name, noise := range pairNoises {
		for _, n := range []int{6, 8, 12} {
			rng := rand.New(rand.NewPCG(2, uint64(n)))
			found, wrong, covered := 0, 0, 0
			for range repetitions {
				null := make([]float64, n)
				for i := range null {
					block := math.Exp(0.25 * rng.NormFloat64())
					null[i] = math.Log(block*math.Pow(noise(rng), 0.2)) - math.Log(block*math.Pow(noise(rng), 0.2))
				}
				_, p := PairedRatio(null, 0.95)
				count(&wrong, p <= 0.05)
				for i := range null {
					null[i] += math.Log(0.9)
				}
				i, p := PairedRatio(null, 0.95)
				count(&found, p <= 0.05 && i.Hi < 1)
				count(&covered, i.Contains(0.9))
			}
			what := fmt.Sprintf("%s, %d blocks: ", name, n)
			within(t, what+"false claims", wrong, 0, 0.066)
			within(t, what+"covered", covered, 0.93, 1)
			if name == "lognormal" {
				within(t, what+"10 % slower is found", found, 0.95, 1)
			}
		}
	}
}

// effects returns the logarithms of a system's ratios by cell and block, with an effect of each
// block on all its cells.
func effects(rng *rand.Rand, cells, blocks int, common float64) [][]float64 {
	rows := make([][]float64, cells)
	for b := range blocks {
		block := common * rng.NormFloat64()
		for i := range rows {
			v := 0.1*float64(i) + block + 0.02*rng.NormFloat64()
			if i == 1 && b == 3 {
				v = math.NaN()
			}
			rows[i] = append(rows[i], v)
		}
	}
	return rows
}

// A system's blocks differ by 5 and 10 %, in the same way for all cells: only the number of blocks
// counts, not that of cells.
func TestOverCellsBlocksAreTheUnit(t *testing.T) {
	const cells = 6
	for _, common := range []float64{0.05, 0.1} {
		for _, n := range []int{6, 8} {
			rng := rand.New(rand.NewPCG(3, uint64(n)))
			wrong, covered, wrongRuns, coveredRuns := 0, 0, 0, 0
			truth := 0.0 // mean of the cells' true values
			for i := range cells {
				truth += 0.1 * float64(i) / cells
			}
			for range repetitions {
				a, b := effects(rng, cells, n, common), effects(rng, cells, n, common)
				centres := make([]float64, cells)
				for i := range a {
					centres[i] = Median(slices.DeleteFunc(slices.Clone(a[i]), math.IsNaN))
				}
				means := BlockMeans(a, centres)
				i, _ := PairedRatio(means, 0.95)
				count(&covered, i.Contains(math.Exp(truth)))
				for j := range means {
					means[j] -= truth
				}
				_, p := PairedRatio(means, 0.95)
				count(&wrong, p <= 0.05)
				i, p = RunsRatio(a, b, 0.95)
				count(&wrongRuns, p <= 0.05)
				count(&coveredRuns, i.Contains(1))
			}
			what := fmt.Sprintf("effect %g, %d blocks: ", common, n)
			within(t, what+"false claims", wrong, 0, 0.066)
			within(t, what+"false claims of two runs", wrongRuns, 0, 0.066)
			within(t, what+"covered", covered, 0.93, 1)
			within(t, what+"covered by two runs", coveredRuns, 0.93, 1)
		}
	}
}

func TestRunsRatio(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	a, b := effects(rng, 4, 6, 0.02), effects(rng, 4, 6, 0.02)
	for _, row := range a {
		for i := range row {
			row[i] += math.Log(1.2)
		}
	}
	if i, p := RunsRatio(a, b, 0.95); i.N != 4 || !i.Contains(1.2) || i.Lo < 1 || p > 0.001 {
		t.Errorf("%+v, p = %v", i, p)
	}
	if i, p := RunsRatio(effects(rng, 4, 5, 0.02), b, 0.95); i.Bounded() || !math.IsNaN(p) || math.Abs(i.Mid-1) > 0.1 {
		t.Errorf("five blocks: %+v, p = %v", i, p)
	}
	if i, p := RunsRatio([][]float64{{1, 2}}, [][]float64{{3}}, 0.95); i.N != 0 || !math.IsNaN(p) {
		t.Errorf("a single value: %+v, p = %v", i, p)
	}
}
