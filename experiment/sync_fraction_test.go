package experiment

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"
)

// The designs are those of the tables (Box, Hunter, Hunter: Statistics for
// Experimenters, 2005, table 6.22; NIST/SEMATECH e-Handbook, 5.3.3.4.7), by
// resolution and by the number of shortest words.
func TestFractionsAreThoseOfTheTables(t *testing.T) {
	for _, c := range []struct{ k, p, resolution, shortest int }{
		{3, 1, 3, 1}, {4, 1, 4, 1}, {5, 1, 5, 1}, {6, 1, 6, 1}, {7, 1, 7, 1}, {8, 1, 8, 1}, {10, 1, 10, 1},
		{5, 2, 3, 2}, {6, 2, 4, 3}, {7, 2, 4, 1}, {8, 2, 5, 2}, {9, 2, 6, 3},
		{6, 3, 3, 4}, {7, 3, 4, 7}, {8, 3, 4, 3}, {9, 3, 4, 1}, {10, 3, 5, 3},
	} {
		words := fractionWords(c.k, c.p)
		if len(words) != 1<<c.p-1 {
			t.Fatalf("2^(%d-%d): %d words", c.k, c.p, len(words))
		}
		pattern := wordLengths(words, c.k)
		shortest := slices.IndexFunc(pattern, func(n int) bool { return n > 0 })
		if shortest != c.resolution || pattern[shortest] != c.shortest {
			t.Errorf("2^(%d-%d): word lengths %v, want %d of length %d", c.k, c.p, pattern, c.shortest, c.resolution)
		}
	}
	for p, k := range map[int]int{1: 3, 2: 5, 3: 6} {
		if got := leastFactors(p); got != k {
			t.Errorf("1/%d needs %d factors, want %d", 1<<p, got, k)
		}
	}
}

// A plan of a fraction has as many cells as it says, each value of each factor in
// half of them, and any two main effects are orthogonal; it has the default.
func TestFractionsAreBalanced(t *testing.T) {
	const src = `
scenario: sync
systems: [ledger]
link: {rate: [10Mbit, 50Mbit], delay: [0s, 20ms]}
sync:
  peers: [1, 4]
  storage: [disk, ram]
  form: [v2, v1]
  blocks: [10, 20, 30]
  vary: {subscriber: [none, full], fsync: [true, false]}
`
	all := mustPlan(t, src)
	for design, of := range map[string]int{"full": 1, "1/2": 2, "1/4": 4, "1/8": 8} {
		p := mustPlan(t, src, "sync.design="+design)
		if len(p.Cells)*of != len(all.Cells) || len(all.Cells) != 128*3 {
			t.Fatalf("%s: %d cells of %d", design, len(p.Cells), len(all.Cells))
		}
		first := []string{}
		for _, f := range all.Cells[0].Factors {
			first = append(first, f.Value)
		}
		seen := map[string]bool{}
		hasDefault := false
		for _, c := range p.Cells {
			values := []string{}
			for _, f := range c.Factors {
				values = append(values, f.Value)
			}
			seen[strings.Join(values, " ")] = true
			hasDefault = hasDefault || slices.Equal(values, first)
		}
		if len(seen) != len(p.Cells) || !hasDefault {
			t.Errorf("%s: %d of %d cells differ, default among them: %t", design, len(seen), len(p.Cells), hasDefault)
		}
		for i := range p.Cells[0].Factors {
			for j := range i {
				pairs := map[string]int{}
				for _, c := range p.Cells {
					pairs[c.Factors[i].Value+" "+c.Factors[j].Value]++
				}
				for pair, n := range pairs {
					if n*len(pairs) != len(p.Cells) {
						t.Errorf("%s: %s is in %d of %d cells", design, pair, n, len(p.Cells))
					}
				}
			}
		}
		if f, ok := p.Fractions(); ok != (of > 1) || ok && (f.Of != of || len(f.Factors) != 7) {
			t.Errorf("%s: %+v", design, f)
		}
	}
}

// Effects that are said to be mixed are the same contrast of the cells, and no
// others are.
func TestMixedEffectsAreTheSameContrast(t *testing.T) {
	for _, c := range []struct{ k, p int }{{3, 1}, {4, 1}, {5, 2}, {6, 3}, {7, 3}, {8, 2}} {
		words := fractionWords(c.k, c.p)
		var names []string
		for i := range c.k {
			names = append(names, fmt.Sprint(i))
		}
		contrast := func(effect uint) string {
			var b strings.Builder
			for run := range uint(1) << c.k {
				if !slices.ContainsFunc(words, func(w uint) bool { return bits.OnesCount(run&w)%2 == 1 }) {
					fmt.Fprint(&b, bits.OnesCount(run&effect)%2)
				}
			}
			return b.String()
		}
		same := map[string][]string{}
		var order []string
		for _, size := range []int{1, 2} {
			for i := range c.k {
				for j := i; j < c.k; j++ {
					effect := uint(1)<<i | uint(1)<<j
					if bits.OnesCount(effect) != size {
						continue
					}
					key := contrast(effect)
					if same[key] == nil {
						order = append(order, key)
					}
					same[key] = append(same[key], effectName(names, effect))
				}
			}
		}
		var want [][]string
		for _, key := range order {
			if len(same[key]) > 1 {
				want = append(want, same[key])
			}
		}
		if got := mixed(names, words); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("2^(%d-%d): mixed are %v, want %v", c.k, c.p, got, want)
		}
	}
}
