package workload

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

const (
	kB  = 1_000
	MiB = 1 << 20
	GB  = 1_000_000_000
)

// The media library of the issue: the shares are exact for every seed.
func TestSpreadShares(t *testing.T) {
	mix := []Bucket{{60, 2 * MiB, 6 * MiB}, {30, 20 * MiB, 20 * MiB}, {10, 700 * MiB, 700 * MiB}}
	for _, c := range []struct {
		n    int
		want [3]int
	}{
		{1000, [3]int{600, 300, 100}},
		{10, [3]int{6, 3, 1}},
		{7, [3]int{4, 2, 1}}, // 4.2, 2.1, 0.7
		{1, [3]int{1, 0, 0}},
		{100_003, [3]int{60_002, 30_001, 10_000}}, // 60,001.8, 30,000.9, 10,000.3
	} {
		for seed := range uint64(5) {
			var got [3]int
			for i, s := 0, NewSpread(c.n, seed, mix...); i < c.n; i++ {
				switch size := s.Size(i); {
				case size >= 2*MiB && size <= 6*MiB:
					got[0]++
				case size == 20*MiB:
					got[1]++
				case size == 700*MiB:
					got[2]++
				default:
					t.Fatalf("size %d is in no bucket", size)
				}
			}
			if got != c.want {
				t.Errorf("%d objects, seed %d: %v, want %v", c.n, seed, got, c.want)
			}
		}
	}
}

// Log-uniform: quantile q of the sizes is from·(to/from)^q, within one n-th of the distribution,
// because each n-th has one object.
func TestSpreadQuantiles(t *testing.T) {
	const n = 10_000
	s := NewSpread(n, 3, Bucket{1, kB, GB})
	sizes, logs := make([]float64, n), make([]float64, n)
	for i := range sizes {
		sizes[i] = float64(s.Size(i))
		logs[i] = math.Log(sizes[i])
	}
	if slices.IsSorted(sizes) {
		t.Error("the sizes are in order")
	}
	// Neighbours are not correlated: the order is shuffled.
	if r := successive(logs); math.Abs(r) > 4/math.Sqrt(n) {
		t.Errorf("successive sizes correlate: %v", r)
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		low, high := kB*math.Pow(1e6, float64(i)/n), kB*math.Pow(1e6, float64(i+1)/n)
		if size < low-1 || size > high+1 {
			t.Fatalf("quantile %v is %.0f, want %.0f to %.0f", float64(i)/n, size, low, high)
		}
	}
	// (to − from) / ln(to/from) on average.
	if want := (GB - kB) / math.Log(1e6); math.Abs(stat.Mean(sizes, nil)-want)/want > 0.001 {
		t.Errorf("mean %v, want %v", stat.Mean(sizes, nil), want)
	}
}

// The sizes are part of the format of results, like the content.
func TestSpreadPinned(t *testing.T) {
	s := NewSpread(1000, 42, Bucket{60, 2 * MiB, 6 * MiB}, Bucket{40, 20 * MiB, 20 * MiB})
	var got []int64
	for i := range 5 {
		got = append(got, s.Size(i))
	}
	if want := []int64{20971520, 2860207, 20971520, 20971520, 20971520}; !slices.Equal(got, want) {
		t.Errorf("sizes %v, want %v", got, want)
	}
}

// TestPermutation checks that every number occurs once, for sizes around the powers of two and
// four.
func TestPermutation(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 15, 16, 17, 255, 256, 257, 1000, 65_537} {
		for seed := range uint64(3) {
			p := newPermutation(n, seed)
			seen := make([]bool, n)
			fixed := 0
			for i := range n {
				x := p.of(i)
				if x < 0 || x >= n || seen[x] {
					t.Fatalf("%d of %d goes to %d, seed %d", i, n, x, seed)
				}
				seen[x] = true
				if x == i {
					fixed++
				}
			}
			// The number of fixed points of a random permutation has a Poisson distribution with
			// mean one.
			if n > 10 && fixed > 8 {
				t.Errorf("%d of %d stay in their place, seed %d", fixed, n, seed)
			}
		}
	}
}

// The numbers of requests follow the distribution: chi-square test against its probabilities.
func TestZipf(t *testing.T) {
	const objects, picks = 50, 200_000
	for _, exponent := range []float64{0, 0.7, 1.1, 2} {
		z, norm := NewZipf(objects, exponent), 0.0
		for k := 1; k <= objects; k++ {
			norm += math.Pow(float64(k), -exponent)
		}
		count, want := make([]float64, objects), make([]float64, objects)
		for k := range uint64(picks) {
			count[z.Pick(Uniform(3, k))]++
		}
		for i := range want {
			want[i] = picks * math.Pow(float64(i+1), -exponent) / norm
		}
		chi := stat.ChiSquare(count, want)
		if p := 1 - (distuv.ChiSquared{K: objects - 1}).CDF(chi); p < 1e-4 {
			t.Errorf("exponent %v: chi-square %v, p = %v, counts %v", exponent, chi, p, count)
		}
	}
	if z := NewZipf(3, 1); z.Pick(0) != 0 || z.Pick(1) != 2 {
		t.Error("the ends of the range are not the first and the last object")
	}
}

func readTrace(text string) (*Trace, error) {
	return ReadTrace(strings.NewReader(text), "t.csv", func(s string) (int64,
		error) {
		return strconv.ParseInt(s, 10, 64)
	})
}

func TestTrace(t *testing.T) {
	trace, err := readTrace("# sizes\r\n5, a/b, c.txt\r\n\r\n 0\n7,z\n")
	must(t, err)
	s := NewSynthetic(trace, trace.Name, 1, 1)
	var got []string
	for i := range s.Len() {
		o := s.Object(i)
		got = append(got, fmt.Sprintf("%s %d", o.Name, o.Size))
		if n := len(contentOf(t, s, i)); int64(n) != o.Size {
			t.Errorf("%s: %d bytes", o.Name, n)
		}
	}
	if want := "a/b, c.txt 5; 00000001.bin 0; z 7"; strings.Join(got, "; ") != want {
		t.Errorf("objects %v, want %s", got, want)
	}
	plain, err := readTrace("5\n6\n")
	if err != nil || plain.Name(1) != "00000001.bin" {
		t.Errorf("%v, %v", plain, err)
	}
	// Even a change of one size changes the fingerprint.
	f := func(text string) string {
		trace, err := readTrace(text)
		must(t, err)
		return NewSynthetic(trace, trace.Name, 0, 1).Fingerprint()
	}
	if a, b, c := f("5\n6\n"), f("5\n7\n"), f("5\n6,x\n"); a == b || a == c || a != f("# again\n5\n6\n") {
		t.Errorf("fingerprints %s, %s, %s", a, b, c)
	}
}

func TestBadTraces(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "no line has a size",
		"# nothing\n":              "no line has a size",
		"5\nfive\n":                "t.csv:2: ",
		"5\n-1\n":                  "t.csv:2: a size cannot be negative",
		"5,../x\n":                 "t.csv:1: the name \"../x\" is not a plain path",
		"5,/x\n":                   "t.csv:1: ",
		"5,a//b\n":                 "t.csv:1: ",
		"5,a/\n":                   "t.csv:1: ",
		"5,\xff\n":                 "t.csv:1: the name \"\\xff\" is not valid UTF-8",
		"5,a\n# x\n6,b\n7,a\n":     "t.csv:4: the name \"a\" is the one of line 1, too",
		"5\n6,00000000.bin\n":      "t.csv:2: the name \"00000000.bin\" is the one of line 1, too",
		"?\n?\n":                   "t.csv:1: ",
		strings.Repeat("1", 2<<20): "t.csv:1: ",
	} {
		if _, err := readTrace(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}
