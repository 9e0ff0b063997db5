package workload

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

func synthetic(t testing.TB, sizes Sizes, opt Options) *Synthetic {
	t.Helper()
	s, err := NewSynthetic(sizes, nil, opt)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func contentOf(t testing.TB, s Set, i int) []byte {
	t.Helper()
	r, err := s.Open(i)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(b)) != s.Object(i).Size {
		t.Fatalf("object %d has %d bytes of %d", i, len(b), s.Object(i).Size)
	}
	return b
}

// Copies of seeded content: other names, the same sizes, fresh bytes.
func TestSyntheticCopies(t *testing.T) {
	s := synthetic(t, spread(t, 4, 1, Bucket{1, 100, 1000}), Options{Seed: 1, Copies: 3})
	names, contents := map[string]bool{}, map[string]bool{}
	for i := range s.Len() {
		o := s.Object(i)
		names[o.Name] = true
		contents[string(contentOf(t, s, i))] = true
		if o.Size != s.Object(i%4).Size {
			t.Errorf("object %d has %d bytes, the one it copies %d", i, o.Size, s.Object(i%4).Size)
		}
	}
	if s.Len() != 12 || len(names) != 12 || len(contents) != 12 {
		t.Errorf("%d objects, %d names, %d contents", s.Len(), len(names), len(contents))
	}
	if got := s.Object(5).Name; got != "00000001-00000001.bin" {
		t.Errorf("the second object of the second copy is %q", got)
	}
}

func TestCopyName(t *testing.T) {
	for name, want := range map[string]string{
		"a/b.txt": "a/b-00000007.txt", "a.d/b": "a.d/b-00000007", ".profile": ".profile-00000007",
		"a/.x":     "a/.x-00000007",
		"x.tar.gz": "x.tar-00000007.gz", "a.": "a-00000007.", "..b": "..b-00000007",
	} {
		if got := copyName(name, 7); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

// Check finds every single wrong bit, wherever it is and however the bytes come.
func TestCheckFindsOneBit(t *testing.T) {
	s := synthetic(t, Fixed{2, 3*checkChunk + 100}, Options{Seed: 1})
	good := contentOf(t, s, 1)
	for _, piece := range []int{1 << 20, 4096, 1000, 7} {
		if err := check(t, s, 1, good, piece); err != nil {
			t.Errorf("in pieces of %d: %v", piece, err)
		}
		for at := 0; at < len(good); at += 1 + at%97 + len(good)/300 {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << (at % 8)
			var m *Mismatch
			if err := check(t, s, 1, bad, piece); !errors.As(err, &m) || m.At != int64(at) || m.Why != "differs" {
				t.Fatalf("bit in byte %d, pieces of %d: %v", at, piece, err)
			}
		}
	}
	var m *Mismatch
	if err := check(t, s, 1, append(bytes.Clone(good), 0), 1000); !errors.As(err, &m) || m.At != int64(len(good)) ||
		m.Why != "is beyond the end" {
		t.Errorf("one byte more: %v", err)
	}
	if err := check(t, s, 1, good[:len(good)-1], 1000); !errors.As(err, &m) || m.At != int64(len(good)-1) ||
		m.Why != "is missing" {
		t.Errorf("one byte less: %v", err)
	}
	if err := check(t, s, 0, good, 1000); !errors.As(err, &m) {
		t.Errorf("another object passes: %v", err)
	}
}

// check writes p in pieces and returns the first error; p must stay as it is.
func check(t *testing.T, s Set, i int, p []byte, piece int) error {
	t.Helper()
	before := bytes.Clone(p)
	w, err := s.Check(i)
	if err != nil {
		t.Fatal(err)
	}
	for off := 0; off < len(p) && err == nil; off += piece {
		q := p[off:min(off+piece, len(p))]
		var n int
		if n, err = w.Write(q); err == nil && n != len(q) {
			t.Fatalf("wrote %d of %d without an error", n, len(q))
		}
	}
	if !bytes.Equal(p, before) {
		t.Fatal("Write has changed what it was given")
	}
	if cerr := w.Close(); err == nil {
		err = cerr
	}
	return err
}

func TestCheckOfNothing(t *testing.T) {
	s := synthetic(t, Fixed{1, 0}, Options{})
	if err := check(t, s, 0, nil, 1); err != nil {
		t.Error(err)
	}
	if err := check(t, s, 0, []byte{0}, 1); err == nil {
		t.Error("a byte of an empty object passes")
	}
}

// A million objects take no memory, and each is computed in no time to speak of.
func TestMillionObjects(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s := synthetic(t, spread(t, 1_000_000, 1, Bucket{1, 1, GB}), Options{Seed: 1, Copies: 2})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 100_000 {
		t.Errorf("the set takes %d bytes", grown)
	}
	sum := int64(0)
	for i := range s.Len() {
		sum += s.Object(i).Size
	}
	want := 2e6 * (GB - 1) / math.Log(GB)
	if math.Abs(float64(sum)-want)/want > 0.02 {
		t.Errorf("%d bytes in all, want about %.0f", sum, want)
	}
}

func TestBadSets(t *testing.T) {
	for _, opt := range []Options{{Copies: -1}, {Copies: 1 << 40}} {
		if _, err := NewSynthetic(Fixed{10, 1}, nil, opt); err == nil {
			t.Errorf("%+v is accepted", opt)
		}
	}
	if _, err := NewSynthetic(Fixed{}, nil, Options{}); err == nil {
		t.Error("a set without an object is accepted")
	}
}

// What differs shows in the fingerprint; where a process makes it does not.
func TestFingerprint(t *testing.T) {
	base := Options{Seed: 1}
	seen := map[string]string{}
	for what, s := range map[string]*Synthetic{
		"base":   synthetic(t, Fixed{10, 5}, base),
		"count":  synthetic(t, Fixed{11, 5}, base),
		"size":   synthetic(t, Fixed{10, 6}, base),
		"spread": synthetic(t, spread(t, 10, 1, Bucket{1, 5, 6}), base),
		"seed":   synthetic(t, Fixed{10, 5}, Options{Seed: 2}),
		"copies": synthetic(t, Fixed{10, 5}, Options{Seed: 1, Copies: 2}),
	} {
		f := s.Fingerprint()
		if other, ok := seen[f]; ok {
			t.Errorf("%s and %s have one fingerprint", what, other)
		}
		if len(f) != 64 || f != s.Fingerprint() {
			t.Errorf("%s: fingerprint %q", what, f)
		}
		seen[f] = what
	}
}

// The same set in another process: same names, sizes and bytes.
func TestReproducibleAcrossProcesses(t *testing.T) {
	const ask = "PLIMSOLL_TEST_DIGEST"
	digest := func() string {
		s := synthetic(t, spread(t, 50, 9, Bucket{60, 10, 10_000}, Bucket{40, 1, 1}), Options{Seed: 9, Copies: 2})
		var all bytes.Buffer
		for i := range s.Len() {
			fmt.Fprintln(&all, s.Object(i))
			all.Write(contentOf(t, s, i))
		}
		return s.Fingerprint() + fmt.Sprintf(" %x", sha256.Sum256(all.Bytes()))
	}
	if os.Getenv(ask) != "" {
		fmt.Println("digest:", digest())
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestReproducibleAcrossProcesses$")
	cmd.Env = append(os.Environ(), ask+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, theirs, _ := strings.Cut(string(out), "digest: ")
	theirs, _, _ = strings.Cut(theirs, "\n")
	if ours := digest(); theirs != ours {
		t.Errorf("another process has %q, this one %q", theirs, ours)
	}
}
