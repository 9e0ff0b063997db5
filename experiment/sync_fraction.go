package experiment

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Fractions is which part of all combinations of factors with two values is
// executed: a regular fraction 2^(k−p), in which main effects are mixed with as
// few others as possible. It has the combination of all first values.
type Fractions struct {
	Factors    []string   // labels of the k factors
	Of         int        // 2^p: one in so many combinations is executed
	Resolution int        // factors in the shortest product that is constant over all cells
	Mixed      [][]string // main effects ("storage") and interactions of two ("storage × peers") that cannot be told from each other
}

// Limits of fractions.
const (
	leastResolution = 3  // below it main effects are mixed with each other
	mostFactors     = 10 // with two values; all designs of so many are looked through
)

// designs are the keys of sync.design that are fractions, with p.
var designs = map[string]int{"1/2": 1, "1/4": 2, "1/8": 3}

// leastFactors is how many factors a fraction 2^(k−p) needs for
// [leastResolution]: 2^(3−1), 2^(5−2) and 2^(6−3) are the smallest.
func leastFactors(p int) int {
	for k := p + 1; ; k++ {
		if fractionWords(k, p) != nil {
			return k
		}
	}
}

// fractionWords are the 2^p − 1 products of factors, as sets of bits, that are
// constant over the runs of the fraction 2^(k−p) of maximum resolution and, among
// those, of minimum aberration (Fries, Hunter: Minimum aberration 2^(k−p) designs,
// Technometrics 22, 1980). The last p factors are products of the others, so that
// a run is in the fraction if it has an even number of second values among the
// factors of each word. Of all such choices the first best is taken. It is nil
// where a main effect would be mixed with another.
func fractionWords(k, p int) []uint {
	base := k - p
	var best []uint
	var bestPattern []int
	chosen := make([]uint, 0, p)
	var choose func(from uint)
	choose = func(from uint) {
		if len(chosen) == p {
			words := products(chosen)
			pattern := wordLengths(words, k)
			if pattern[1]+pattern[2] == 0 && (best == nil || slices.Compare(pattern, bestPattern) < 0) {
				best, bestPattern = words, pattern
			}
			return
		}
		added := uint(1) << (base + len(chosen))
		for product := from; product < 1<<base; product++ {
			if bits.OnesCount(product) >= leastResolution-1 {
				chosen = append(chosen, product|added)
				choose(product + 1)
				chosen = chosen[:len(chosen)-1]
			}
		}
	}
	choose(1)
	return best
}

// products are those of all choices of the words.
func products(words []uint) []uint {
	all := make([]uint, 0, 1<<len(words)-1)
	for choice := uint(1); choice < 1<<len(words); choice++ {
		product := uint(0)
		for i, w := range words {
			if choice>>i&1 == 1 {
				product ^= w
			}
		}
		all = append(all, product)
	}
	return all
}

// wordLengths is how many of the words have 0, 1, … k factors.
func wordLengths(words []uint, k int) []int {
	pattern := make([]int, k+1)
	for _, w := range words {
		pattern[bits.OnesCount(w)]++
	}
	return pattern
}

// fraction is the design of an experiment: its words are sets of the axes that
// have two values, which are given by their indices.
type fraction struct {
	axes  []int
	words []uint
}

// fraction is nil where all combinations are executed.
func (e *Experiment) fraction(axes []axisRef) *fraction {
	if e.Sync == nil || designs[e.Sync.Design] == 0 {
		return nil
	}
	f := &fraction{axes: twoValued(axes)}
	f.words = fractionWords(len(f.axes), designs[e.Sync.Design])
	return f
}

// twoValued are the indices of the axes with two values.
func twoValued(axes []axisRef) []int {
	var two []int
	for i, a := range axes {
		if a.values.Len() == 2 {
			two = append(two, i)
		}
	}
	return two
}

// has reports whether a combination, by its levels on all axes, is in the fraction.
func (f *fraction) has(levels []int) bool {
	if f == nil {
		return true
	}
	second := uint(0)
	for i, axis := range f.axes {
		second |= uint(levels[axis]) << i
	}
	return !slices.ContainsFunc(f.words, func(w uint) bool { return bits.OnesCount(w&second)%2 == 1 })
}

// Fractions is the design of the plan; ok is false where all combinations are
// executed.
func (p *Plan) Fractions() (f Fractions, ok bool) {
	axes := p.Experiment.axes()
	design := p.Experiment.fraction(axes)
	if design == nil {
		return Fractions{}, false
	}
	f = Fractions{Of: len(design.words) + 1, Resolution: len(design.axes)}
	for _, i := range design.axes {
		f.Factors = append(f.Factors, axes[i].field.label)
	}
	for _, w := range design.words {
		f.Resolution = min(f.Resolution, bits.OnesCount(w))
	}
	f.Mixed = mixed(f.Factors, design.words)
	return f, true
}

// mixed are the sets of main effects and interactions of two factors that differ
// by a word only.
func mixed(names []string, words []uint) [][]string {
	var effects []uint
	for i := range names {
		effects = append(effects, 1<<i)
	}
	for i := range names {
		for j := i + 1; j < len(names); j++ {
			effects = append(effects, 1<<i|1<<j)
		}
	}
	seen := map[uint]bool{}
	var sets [][]string
	for _, e := range effects {
		if seen[e] {
			continue
		}
		var set []string
		for _, other := range effects {
			if other == e || slices.Contains(words, e^other) {
				seen[other] = true
				set = append(set, effectName(names, other))
			}
		}
		if len(set) > 1 {
			sets = append(sets, set)
		}
	}
	return sets
}

func effectName(names []string, effect uint) string {
	var of []string
	for i, name := range names {
		if effect>>i&1 == 1 {
			of = append(of, name)
		}
	}
	return strings.Join(of, " × ")
}

// text is the design in words; crossed says that there are other factors.
func (f Fractions) text(cells int, crossed bool) string {
	roman := map[int]string{3: "III", 4: "IV", 5: "V", 6: "VI", 7: "VII", 8: "VIII", 9: "IX", 10: "X"}
	clear := map[int]string{
		3: "main effects are mixed with interactions of two factors",
		4: "main effects are mixed with interactions of three factors at least, those of two with each other",
	}[f.Resolution]
	if clear == "" {
		clear = "main effects and interactions of two factors are mixed with interactions of three at least"
	}
	with := ""
	if crossed {
		with = ", each with all values of the other factors"
	}
	text := fmt.Sprintf("1/%d of all combinations of %s%s: %s; resolution %s: %s", f.Of, strings.Join(f.Factors, ", "), with, plural(cells, "cell"), roman[f.Resolution], clear)
	for i, set := range f.Mixed {
		before := "; "
		if i == 0 {
			before = ". Mixed: "
		}
		text += before + strings.Join(set, " = ")
	}
	return text
}

// design checks which combinations are asked for.
func (d *decoder) design(e *Experiment) {
	s, n := e.Sync, d.at["sync.design"]
	p := designs[s.Design]
	if p == 0 || !d.ok("sync", "link") {
		return
	}
	two := len(twoValued(e.axes()))
	switch {
	case s.Search != nil:
		d.fail("sync.design", n, "take one of them away", "`sync.design` is a part of all combinations, and `sync.search` walks among all of them")
	case two < leastFactors(p):
		d.fail("sync.design", n, "execute all combinations (`full`), or a larger part of them",
			"with %s that %s two values, main effects would be mixed with each other: a design of %s needs %d at least", plural(two, "factor"), map[bool]string{true: "has", false: "have"}[two == 1], s.Design, leastFactors(p))
	case two > mostFactors:
		d.fail("sync.design", n, "give some of them one value", "%d factors with two values are more than a design can have, which is %d", two, mostFactors)
	case len(e.Where) > 0:
		d.fail("sync.design", n, "take the conditions away, or write `full`", "`where` would take cells out of a design that is balanced without them")
	}
}
