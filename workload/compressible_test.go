package workload

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math"
	"testing"
)

func sha(b []byte) [32]byte { return sha256.Sum256(b) }

func readCompressible(t testing.TB, c Compressible) []byte {
	t.Helper()
	b, err := io.ReadAll(c.Reader())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What a compressor makes of it: the share that does not compress, and little
// more.
func TestCompressibleShare(t *testing.T) {
	for _, share := range []float64{0.1, 0.5, 0.9, 1} {
		data := readCompressible(t, Compressible{Content{Seed: 5, Size: 1 << 20}, share})
		var out bytes.Buffer
		w, _ := flate.NewWriter(&out, flate.BestCompression)
		w.Write(data)
		w.Close()
		if got := float64(out.Len()) / float64(len(data)); math.Abs(got-(1-share)) > 0.02 {
			t.Errorf("%v compressible: %v of the bytes are left", share, got)
		}
	}
}

// Two objects have no incompressible part in common: each page differs.
func TestCompressiblePagesDiffer(t *testing.T) {
	seen := map[[32]byte]bool{}
	for index := range uint64(4) {
		data := readCompressible(t, Compressible{Content{Seed: 5, Index: index, Size: 16 * page}, 0.9})
		for i := 0; i < len(data); i += page {
			sum := sha(data[i : i+page])
			if seen[sum] {
				t.Fatalf("page %d of object %d was there before", i/page, index)
			}
			seen[sum] = true
		}
	}
}

// Like the content itself, the bytes must be the same years later.
func TestCompressiblePinned(t *testing.T) {
	data := readCompressible(t, Compressible{Content{Seed: 1, Index: 2, Size: 40}, 0.5})
	if got, want := hex.EncodeToString(data), "2566151072c5ef5513cd4dcb34eed0833bf62395"+hex.EncodeToString([]byte("soll"+"plimsollplimsoll")); got != want {
		t.Errorf("the bytes are %s, want %s", got, want)
	}
}

func BenchmarkCompressibleRead(b *testing.B) {
	buf := make([]byte, 256<<10)
	r := Compressible{Content{Size: 1 << 60}, 0.5}.Reader()
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		r.Read(buf)
	}
}

func BenchmarkSetCheck(b *testing.B) {
	for name, share := range map[string]float64{"incompressible": 0, "compressible": 0.5} {
		b.Run(name, func(b *testing.B) {
			const size = 4 << 20
			s := synthetic(b, 1, Fixed{1, size}, Options{Compressible: share})
			data := contentOf(b, s, 0)
			b.SetBytes(size)
			for b.Loop() {
				w, _ := s.Check(0)
				if _, err := w.Write(data); err != nil {
					b.Fatal(err)
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Small objects: what setting up a stream costs.
func BenchmarkOpenOneByte(b *testing.B) {
	s := synthetic(b, 1_000_000, Fixed{1_000_000, 1}, Options{})
	buf := make([]byte, 10)
	i := 0
	for b.Loop() {
		r, _ := s.Open(i % 1_000_000)
		r.Read(buf)
		r.Close()
		i++
	}
}
