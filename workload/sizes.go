package workload

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Sizes are the sizes of a number of objects. Their memory does not depend on the number of
// objects, because each size is computed on request.
type Sizes interface {
	Len() int
	Size(i int) int64 // bytes of the i-th object
	// String describes everything that the sizes depend on: if two descriptions are equal, so are
	// the sizes.
	String() string
}

// Fixed gives all objects one size.
type Fixed struct {
	Objects int
	Bytes   int64
}

func (f Fixed) Len() int       { return f.Objects }
func (f Fixed) Size(int) int64 { return f.Bytes }
func (f Fixed) String() string { return fmt.Sprintf("%d objects of %d B", f.Objects, f.Bytes) }

// Bucket is a part of a data set: a share of the objects, Weight divided by the sum of all weights,
// has sizes from From to To bytes, log-uniformly distributed.
type Bucket struct {
	Weight   float64
	From, To int64 // bytes; both included
}

// Spread distributes sizes over buckets, exactly: each bucket gets its share of the n objects,
// rounded so that the sum is n (largest remainder). A bucket of m objects has one object in each
// m-th of the log-uniform distribution, at a random position within it. So chance affects neither
// the shares nor, noticeably, the sum of all sizes, only the order. The seed determines positions
// and order.
type Spread struct {
	seed    uint64
	buckets []Bucket
	ends    []int // index of the first object beyond each bucket, before shuffling
	order   permutation
}

// NewSpread distributes the sizes of n ≥ 1 objects over buckets, whose weights and sizes are above
// 0.
func NewSpread(n int, seed uint64, buckets ...Bucket) *Spread {
	sum := 0.0
	for _, b := range buckets {
		sum += b.Weight
	}
	s := &Spread{seed: seed, buckets: buckets, order: newPermutation(n, Mix(seed, orderKey))}
	counts, rests, given := make([]int, len(buckets)), make([]float64, len(buckets)), 0
	for i, b := range buckets {
		exact := b.Weight / sum * float64(n)
		// Remove rounding errors from shares that are whole numbers.
		if near := math.Round(exact); math.Abs(exact-near) < 1e-6 {
			exact = near
		}
		counts[i] = int(exact)
		given += counts[i]
		rests[i] = exact - math.Floor(exact)
	}
	for range n - given { // less than one for each bucket
		largest := slices.Index(rests, slices.Max(rests))
		counts[largest]++
		rests[largest] = -1
	}
	end := 0
	for _, c := range counts {
		end += c
		s.ends = append(s.ends, end)
	}
	return s
}

// Keys of the random sequences that Spread derives from its seed.
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

// permutation shuffles the numbers below n without a table: it is a Feistel network over the next
// even number of bits, applied again while the result is not below n (cycle walking; Black and
// Rogaway, CT-RSA 2002).
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

// Zipf is a distribution of requests over objects: the k-th object, counted from 1, is requested in
// proportion to 1/k^exponent. It contains the running sums of these weights.
type Zipf []float64

// NewZipf returns the distribution over n objects; with exponent 0 it is uniform.
func NewZipf(n int, exponent float64) Zipf {
	z, sum := make(Zipf, n), 0.0
	for i := range z {
		sum += math.Pow(float64(i+1), -exponent)
		z[i] = sum
	}
	return z
}

// Pick returns the index of an object for a number between 0 and 1.
func (z Zipf) Pick(u float64) int {
	i, _ := slices.BinarySearch(z, u*z[len(z)-1])
	return min(i, len(z)-1)
}

// Trace is a list of sizes, optionally with names.
type Trace struct {
	sizes []int64
	names []string
}

// ReadTrace reads one object per line: its size and optionally a comma and its name, which may
// contain commas. Empty lines and lines that begin with # are ignored. size parses a size; file is
// the name in error messages.
func ReadTrace(r io.Reader, file string, size func(string) (int64, error)) (*Trace, error) {
	t := &Trace{}
	lines := map[string]int{} // line on which each name appears
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	line := 0
	for in.Scan() {
		line++
		text := strings.TrimSpace(in.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		first, name, _ := strings.Cut(text, ",")
		name = strings.TrimSpace(name)
		n, err := size(strings.TrimSpace(first))
		if err == nil && n < 0 {
			err = errors.New("a size cannot be negative")
		}
		if err == nil && name != "" {
			err = checkName(name)
		}
		name = cmp.Or(name, number(len(t.sizes)))
		if other := lines[name]; err == nil && other > 0 {
			err = fmt.Errorf("the name %q is the one of line %d, too", name, other)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line, err)
		}
		lines[name] = line
		t.sizes, t.names = append(t.sizes, n), append(t.names, name)
	}
	switch err := in.Err(); {
	case err != nil:
		return nil, fmt.Errorf("%s:%d: %w", file, line+1, err)
	case len(t.sizes) == 0:
		return nil, fmt.Errorf("%s: no line has a size", file)
	}
	return t, nil
}

// Len implements Sizes.
func (t *Trace) Len() int { return len(t.sizes) }

// Size implements Sizes.
func (t *Trace) Size(i int) int64 { return t.sizes[i] }

// String implements Sizes. It omits the sizes: they are part of the set's fingerprint, because a
// trace has names.
func (t *Trace) String() string { return fmt.Sprintf("trace of %d objects", len(t.sizes)) }

// Name returns the name of the i-th object.
func (t *Trace) Name(i int) string { return t.names[i] }
