package workload

import (
	"bytes"
	"io"
	"testing"
)

func synthetic(sizes Sizes, seed uint64, copies int) *Synthetic {
	return NewSynthetic(sizes, nil, seed, copies)
}

func contentOf(t testing.TB, s Set, i int) []byte {
	t.Helper()
	r, err := s.Open(i)
	must(t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	must(t, err)
	if int64(len(b)) != s.Object(i).Size {
		t.Fatalf("object %d has %d bytes of %d", i, len(b), s.Object(i).Size)
	}
	return b
}

// Copies of seeded content have different names, the same sizes and fresh bytes.
func TestSyntheticCopies(t *testing.T) {
	s := synthetic(NewSpread(4, 1, Bucket{1, 100, 1000}), 1, 3)
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
		if got := (Object{Name: name}).copy(7, 8).Name; got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

// Check finds every wrong bit, wherever it is and however the bytes are divided.
func TestCheckFindsOneBit(t *testing.T) {
	s := synthetic(Fixed{2, 3*checkChunk + 100}, 1, 1)
	good := contentOf(t, s, 1)
	fails := func(p []byte, piece, at int, want error) {
		t.Helper()
		if err := check(t, s, 1, p, piece); err != want {
			t.Fatalf("in pieces of %d: %v; byte %d: %v", piece, err, at, want)
		}
	}
	for _, piece := range []int{1 << 20, 4096, 1000, 7} {
		if err := check(t, s, 1, good, piece); err != nil {
			t.Errorf("in pieces of %d: %v", piece, err)
		}
		for at := 0; at < len(good); at += 1 + at%97 + len(good)/300 {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << (at % 8)
			fails(bad, piece, at, errDiffers)
		}
	}
	fails(append(bytes.Clone(good), 0), 1000, len(good), errDiffers)
	fails(good[:len(good)-1], 1000, len(good)-1, ErrMissing)
	if check(t, s, 0, good, 1000) == nil {
		t.Error("another object passes")
	}
}

// check writes p in pieces and returns the first error; it must not change p.
func check(t *testing.T, s Set, i int, p []byte, piece int) error {
	t.Helper()
	before := bytes.Clone(p)
	w, err := Check(s, i)
	must(t, err)
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

// The fingerprint shows all differences, and does not depend on the process.
func TestFingerprint(t *testing.T) {
	seen := map[string]string{}
	for what, s := range map[string]*Synthetic{
		"base":   synthetic(Fixed{10, 5}, 1, 1),
		"count":  synthetic(Fixed{11, 5}, 1, 1),
		"size":   synthetic(Fixed{10, 6}, 1, 1),
		"spread": synthetic(NewSpread(10, 1, Bucket{1, 5, 6}), 1, 1),
		"seed":   synthetic(Fixed{10, 5}, 2, 1),
		"copies": synthetic(Fixed{10, 5}, 1, 2),
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
