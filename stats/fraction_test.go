package stats

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
)

// The resolutions of the best fractions (Box, Hunter and Hunter 2005, table 6.22;
// Montgomery 2017, table 8.14).
func TestFraction(t *testing.T) {
	for _, c := range []struct{ k, p, resolution, shortest int }{
		{3, 1, 3, 1}, {4, 1, 4, 1}, {5, 1, 5, 1}, {6, 1, 6, 1},
		{5, 2, 3, 2}, {6, 2, 4, 3}, {7, 2, 4, 1}, {8, 2, 5, 2}, {9, 2, 6, 3},
		{6, 3, 3, 4}, {7, 3, 4, 7}, {8, 3, 4, 3}, {9, 3, 4, 1}, {10, 3, 5, 3},
		{4, 0, 0, 0},
	} {
		t.Run(fmt.Sprintf("2^(%d-%d)", c.k, c.p), func(t *testing.T) {
			d, err := Fraction(c.k, c.p)
			if err != nil {
				t.Fatal(err)
			}
			if d.Resolution != c.resolution || len(d.Runs) != 1<<(c.k-c.p) || len(d.Generators) != c.p {
				t.Errorf("resolution %d, %d runs, generators %v", d.Resolution, len(d.Runs), d.Generators)
			}
			if slices.Contains(d.Runs[0], 1) {
				t.Errorf("the first run is %v, not the default", d.Runs[0])
			}
			seen := map[string]bool{}
			var words []uint
			for _, run := range d.Runs {
				seen[fmt.Sprint(run)] = true
				for _, g := range d.Generators {
					sum := 0
					for _, f := range g {
						sum += int(run[f])
					}
					if sum%2 != 0 {
						t.Errorf("run %v does not obey %v", run, g)
					}
				}
			}
			if len(seen) != len(d.Runs) {
				t.Error("a run is there twice")
			}
			for _, g := range d.Generators {
				w := uint(0)
				for _, f := range g {
					w |= 1 << f
				}
				words = append(words, w)
			}
			shortest := 0
			for _, w := range defining(words) {
				if bits.OnesCount(w) == d.Resolution {
					shortest++
				}
			}
			if shortest != c.shortest {
				t.Errorf("%d words of %d factors, want %d", shortest, d.Resolution, c.shortest)
			}
			for _, set := range d.Aliases {
				if len(set[0]) == 1 && d.Resolution > 3 || d.Resolution > 4 {
					t.Errorf("%v are mixed at resolution %d", set, d.Resolution)
				}
			}
		})
	}
}

// The aliases said in advance are those that the trials then have.
func TestFractionAndFactorialAgree(t *testing.T) {
	d, err := Fraction(5, 2)
	if err != nil {
		t.Fatal(err)
	}
	factors := factorsOf(2, 2, 2, 2, 2)
	var obs []FactorialObs
	for b := range 2 {
		for i, run := range d.Runs {
			levels := make([]int, len(run))
			for f, l := range run {
				levels[f] = int(l)
			}
			obs = append(obs, FactorialObs{Levels: levels, Block: b, Value: float64(1 + (i*7+b)%5)})
		}
	}
	fit, err := Factorial(factors, obs, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range fit.Effects {
		if e.Kind != MainEffect {
			continue
		}
		var want []string
		for _, set := range d.Aliases {
			if slices.ContainsFunc(set, func(term []int) bool { return slices.Equal(term, e.Factors) }) {
				for _, term := range set[1:] {
					want = append(want, factors[term[0]].Name+" × "+factors[term[1]].Name)
				}
			}
		}
		if !slices.Equal(e.AliasedWith, want) {
			t.Errorf("%v: aliased with %q, said %q", e.Factors, e.AliasedWith, want)
		}
	}
}

func TestFractionErrors(t *testing.T) {
	for want, kp := range map[string][2]int{
		"at least 3": {2, 1}, "at least 5": {4, 2}, "at least 6": {5, 3}, "1/8 are possible": {9, 4}, "from 1 to 16": {17, 1},
	} {
		if _, err := Fraction(kp[0], kp[1]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", kp, err, want)
		}
	}
}
