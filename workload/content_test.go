package workload

import (
	"bytes"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

func all(t *testing.T, c Content) []byte {
	t.Helper()
	b, err := io.ReadAll(c.Reader())
	must(t, err)
	if int64(len(b)) != c.Size {
		t.Fatalf("read %d bytes of %d", len(b), c.Size)
	}
	return b
}

// The stream is part of the format of results: files of a data set made today
// must verify years later.
func TestContentPinned(t *testing.T) {
	got := hex.EncodeToString(all(t, Content{Seed: 1, Index: 2, Size: 20}))
	if want := "2566151072c5ef5513cd4dcb34eed0833bf62395"; got != want {
		t.Errorf("the first bytes are %s, want %s", got, want)
	}
}

func TestContentDependsOnSeedAndIndex(t *testing.T) {
	a := all(t, Content{Seed: 1, Index: 0, Size: 64})
	if !bytes.Equal(a, all(t, Content{Seed: 1, Index: 0, Size: 64})) {
		t.Error("the same object has other bytes the second time")
	}
	for _, c := range []Content{{Seed: 2, Size: 64}, {Seed: 1, Index: 1, Size: 64}} {
		if bytes.Equal(a, all(t, c)) {
			t.Errorf("%+v has the bytes of another object", c)
		}
	}
}

func TestRandomAccessEqualsSequential(t *testing.T) {
	c := Content{Seed: 3, Index: 9, Size: 100_003}
	want := all(t, c)
	if err := iotest.TestReader(c.Reader(), want); err != nil {
		t.Error(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		off := rng.Int64N(c.Size)
		p := make([]byte, rng.IntN(20_000))
		r := c.Reader()
		if _, err := r.Seek(off, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		n, err := r.Read(p)
		if !bytes.Equal(p[:n], want[off:off+int64(n)]) || int64(n) != min(int64(len(p)), c.Size-off) || err != nil {
			t.Fatalf("%d of %d bytes from %d differ from the sequential stream, or %v", n, len(p), off, err)
		}
	}
}

// Every wrong bit must be found.
func TestReaderFindsOneBit(t *testing.T) {
	c := Content{Seed: 3, Index: 1, Size: 3*checkChunk + 100}
	check := func(p []byte, off int64) bool {
		r := c.Reader()
		r.Seek(off, io.SeekStart)
		return r.Check(p)
	}
	data := all(t, c)
	for _, off := range []int64{0, 5, checkChunk - 1} {
		for _, at := range []int64{off, off + 1, off + checkChunk - 1, off + checkChunk, off + 2*checkChunk + 7,
			c.Size - 1} {
			p := bytes.Clone(data[off:])
			p[at-off] ^= 1 << (at % 8)
			if check(p, off) {
				t.Errorf("bit at %d, verified from %d", at, off)
			}
		}
	}
	if !check(bytes.Clone(data), 0) || check(append(bytes.Clone(data), 0), 0) {
		t.Error("the object itself, or a byte beyond its end")
	}
}
