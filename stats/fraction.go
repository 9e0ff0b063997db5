package stats

import (
	"fmt"
	"math/bits"
	"slices"
)

// FractionDesign is a regular fraction of all combinations of k factors with two
// levels each.
type FractionDesign struct {
	Factors    int
	Runs       [][]int8 // levels, 0 or 1, of each factor; the first run is the default, all 0
	Generators [][]int  // words whose factors' levels add up to an even number in each run; the last factor of a word is in no other
	Resolution int      // factors in the shortest word: 3 mixes main effects with interactions of two, 4 these with one another; 0: nothing is mixed
	// Aliases are the main effects and interactions of two factors that cannot be
	// told from each other: sets of two terms or more, each one or two factors.
	Aliases [][][]int
}

// maxFractionFactors bounds the runs that are listed.
const maxFractionFactors = 16

// Fraction chooses the 2^(k−p) combinations of k two-level factors that mix main
// effects with as few others as possible: the one of highest resolution, and of
// these the one with the fewest shortest words (minimum aberration: Fries and
// Hunter 1980; Box, Hunter and Hunter 2005, ch. 6). It is found by going through
// all: a fraction is, up to the factors' names, how many factors are in each
// combination of its p generators. The default combination is always among the
// runs.
//
// An error: numbers out of range, or a fraction so small that main effects are
// mixed with each other.
func Fraction(k, p int) (FractionDesign, error) {
	if k < 1 || k > maxFractionFactors {
		return FractionDesign{}, fmt.Errorf("fraction: %d factors with two levels: from 1 to %d are possible", k, maxFractionFactors)
	}
	if p < 0 || p > 3 {
		return FractionDesign{}, fmt.Errorf("fraction: 1/2^%d of the combinations: full, 1/2, 1/4 and 1/8 are possible", p)
	}
	words := leastAberration(k, p)
	if words == nil {
		need := map[int]int{1: 3, 2: 5, 3: 6}[p]
		return FractionDesign{}, fmt.Errorf("fraction: 1/%d of the combinations of %d factors with two levels mixes main effects with each other: at least %d such factors are needed", 1<<p, k, need)
	}
	d := FractionDesign{Factors: k}
	for _, w := range words {
		d.Generators = append(d.Generators, members(w))
	}
	span := defining(words)
	for _, w := range span {
		if n := bits.OnesCount(w); d.Resolution == 0 || n < d.Resolution {
			d.Resolution = n
		}
	}
	for run := range uint(1) << k {
		if slices.ContainsFunc(words, func(w uint) bool { return bits.OnesCount(run&w)%2 != 0 }) {
			continue
		}
		levels := make([]int8, k)
		for f := range levels {
			levels[f] = int8(run >> f & 1)
		}
		d.Runs = append(d.Runs, levels)
	}
	d.Aliases = aliases(k, span)
	return d, nil
}

// members are the factors of a word.
func members(w uint) []int {
	var all []int
	for f := range bits.Len(w) {
		if w>>f&1 != 0 {
			all = append(all, f)
		}
	}
	return all
}

// defining is the whole defining relation: all products of the words, but for the
// empty one.
func defining(words []uint) []uint {
	var all []uint
	for set := 1; set < 1<<len(words); set++ {
		product := uint(0)
		for i, w := range words {
			if set>>i&1 != 0 {
				product ^= w
			}
		}
		all = append(all, product)
	}
	return all
}

// leastAberration gives p words over k factors; nil when each choice has one of
// two factors or fewer.
func leastAberration(k, p int) []uint {
	kinds := 1 << p // the generators that a factor may be in, as bits
	count := make([]int, kinds)
	var best, bestCount []int
	var try func(kind, left int)
	try = func(kind, left int) {
		if kind == 0 {
			count[0] = left
			pattern := make([]int, k+1) // words of each length
			for set := 1; set < kinds; set++ {
				length := 0
				for v, n := range count {
					if bits.OnesCount(uint(v&set))%2 != 0 {
						length += n
					}
				}
				if length < 3 {
					return
				}
				pattern[length]++
			}
			if best == nil || slices.Compare(pattern, best) < 0 {
				best, bestCount = pattern, slices.Clone(count)
			}
			return
		}
		for n := range left + 1 {
			count[kind] = n
			try(kind-1, left-n)
		}
	}
	try(kinds-1, k)
	if best == nil {
		return nil
	}
	words := make([]uint, p)
	f := 0
	for v, n := range bestCount {
		for range n {
			for g := range p {
				if v>>g&1 != 0 {
					words[g] |= 1 << f
				}
			}
			f++
		}
	}
	return reduced(words)
}

// reduced gives words with the same products, the last factor of each of which is
// in no other.
func reduced(words []uint) []uint {
	for i := range words {
		last := bits.Len(words[i]) - 1
		for j := range words {
			if j != i && words[j]>>last&1 != 0 {
				words[j] ^= words[i]
			}
		}
	}
	slices.Sort(words)
	return words
}

// aliases are the sets of terms of one or two factors that are mixed.
func aliases(k int, span []uint) [][][]int {
	var terms []uint
	for f := range k {
		terms = append(terms, 1<<f)
	}
	for f := range k {
		for g := f + 1; g < k; g++ {
			terms = append(terms, 1<<f|1<<g)
		}
	}
	var all [][][]int
	done := map[uint]bool{}
	for i, t := range terms {
		if done[t] {
			continue
		}
		set := [][]int{members(t)}
		for _, u := range terms[i+1:] {
			if slices.Contains(span, t^u) {
				set, done[u] = append(set, members(u)), true
			}
		}
		if len(set) > 1 {
			all = append(all, set)
		}
	}
	return all
}
