package workload

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Sizes are the sizes of a number of objects. They take the same memory for a
// million objects as for one: each size is computed when it is asked for.
type Sizes interface {
	Len() int
	Size(i int) int64 // bytes of the i-th
	// String says all that the sizes depend on: two that say the same are the same.
	String() string
}

// Fixed is one size for all objects.
type Fixed struct {
	Objects int
	Bytes   int64
}

func (f Fixed) Len() int       { return f.Objects }
func (f Fixed) Size(int) int64 { return f.Bytes }
func (f Fixed) String() string { return fmt.Sprintf("%d objects of %d B", f.Objects, f.Bytes) }

// Bucket is a part of a data set: Weight of the sum of all weights of its
// objects have sizes from From to To bytes, log-uniform between the two.
type Bucket struct {
	Weight   float64
	From, To int64 // bytes; both included
}

// Spread is sizes that are spread over buckets, exactly: of n objects a bucket
// has its share, rounded so that the sum is n (largest remainder), and within a
// bucket of m objects there is one in each m-th of the log-uniform distribution,
// at a place in it that the seed chooses. So neither the shares nor the sum of
// all sizes depends on luck; only the order does, which the seed chooses, too.
type Spread struct {
	seed    uint64
	buckets []Bucket
	ends    []int // index of the first object beyond each bucket, before shuffling
	order   permutation
}

// NewSpread spreads the sizes of n objects over buckets.
func NewSpread(n int, seed uint64, buckets ...Bucket) (*Spread, error) {
	if n < 1 || len(buckets) == 0 {
		return nil, errors.New("workload: a spread of sizes needs at least one object and one range")
	}
	sum := 0.0
	for _, b := range buckets {
		if !(b.Weight > 0) || math.IsInf(b.Weight, 0) || b.From < 1 || b.To < b.From {
			return nil, fmt.Errorf("workload: a share of %v with sizes from %d to %d bytes cannot be had", b.Weight,
				b.From, b.To)
		}
		sum += b.Weight
	}
	s := &Spread{seed: seed, buckets: slices.Clone(buckets), order: newPermutation(n, Mix(seed, orderKey))}
	type rest struct {
		bucket int
		share  float64
	}
	var rests []rest
	counts, given := make([]int, len(buckets)), 0
	for i, b := range buckets {
		exact := b.Weight / sum * float64(n)
		// What is a whole number but for rounding is one.
		if near := math.Round(exact); math.Abs(exact-near) < 1e-6 {
			exact = near
		}
		counts[i] = int(exact)
		given += counts[i]
		rests = append(rests, rest{i, exact - math.Floor(exact)})
	}
	slices.SortStableFunc(rests, func(a, b rest) int {
		switch {
		case a.share > b.share:
			return -1
		case a.share < b.share:
			return 1
		}
		return 0
	})
	for i := range n - given {
		counts[rests[i%len(rests)].bucket]++
	}
	end := 0
	for _, c := range counts {
		end += c
		s.ends = append(s.ends, end)
	}
	return s, nil
}

// Keys of the random sequences that a spread takes from its seed.
const (
	orderKey = 0x6f72646572 // "order"
	placeKey = 0x706c616365 // "place"
)

// Len implements Sizes.
func (s *Spread) Len() int { return s.ends[len(s.ends)-1] }

// Size implements Sizes.
func (s *Spread) Size(i int) int64 {
	at := s.order.of(i)
	k, from := 0, 0
	for at >= s.ends[k] {
		from = s.ends[k]
		k++
	}
	b := s.buckets[k]
	if b.From == b.To {
		return b.From
	}
	place := float64(Mix(Mix(s.seed, placeKey), uint64(at))>>11) / (1 << 53)
	u := (float64(at-from) + place) / float64(s.ends[k]-from)
	size := math.Round(float64(b.From) * math.Exp(u*math.Log(float64(b.To)/float64(b.From))))
	return min(max(int64(size), b.From), b.To)
}

// String implements Sizes.
func (s *Spread) String() string {
	var parts []string
	from := 0
	for k, b := range s.buckets {
		parts = append(parts, fmt.Sprintf("%d objects of %d..%d B", s.ends[k]-from, b.From, b.To))
		from = s.ends[k]
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(", seed %d", s.seed)
}

// permutation shuffles the numbers below n without a table of them: a Feistel
// network over the next even number of bits, applied again while the result is
// not below n (cycle walking; Black and Rogaway, CT-RSA 2002).
type permutation struct {
	n    uint64
	half int // bits of one half
	seed uint64
}

func newPermutation(n int, seed uint64) permutation {
	return permutation{uint64(n), max(1, (bits.Len64(uint64(n-1))+1)/2), seed}
}

const feistelRounds = 6

func (p permutation) of(i int) int {
	x := uint64(i)
	mask := uint64(1)<<p.half - 1
	for {
		left, right := x>>p.half, x&mask
		for r := range uint64(feistelRounds) {
			left, right = right, left^Mix(p.seed+r, right)&mask
		}
		if x = left<<p.half | right; x < p.n {
			return int(x)
		}
	}
}
