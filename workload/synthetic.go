package workload

import (
	"crypto/sha256"
	"fmt"
	"io"
	"path"
	"strings"
)

// Synthetic is a set of seeded content. Every object is computed on request, so even a million of
// them take no memory.
type Synthetic struct {
	Sizes
	names  func(i int) string
	seed   uint64
	copies int
}

// NewSynthetic returns a set with an object for each size, repeated copies times, each time with
// different content and names. names must be unique; nil means numbers: 00000000.bin.
func NewSynthetic(sizes Sizes, names func(i int) string, seed uint64, copies int) *Synthetic {
	return &Synthetic{sizes, names, seed, copies}
}

// Len implements Set.
func (s *Synthetic) Len() int { return s.Sizes.Len() * s.copies }

// Object implements Set.
func (s *Synthetic) Object(i int) Object {
	k, name := i%s.Sizes.Len(), number
	if s.names != nil {
		name = s.names
	}
	return Object{name(k), s.Size(k)}.copy(i/s.Sizes.Len(), s.copies)
}

// Open implements Set. The objects of all copies are numbered consecutively.
func (s *Synthetic) Open(i int) (io.ReadSeekCloser, error) {
	content := Content{Seed: s.seed, Index: uint64(i), Size: s.Size(i % s.Sizes.Len())}
	return content.Reader(), nil
}

// Fingerprint implements Set. It also covers the content.
func (s *Synthetic) Fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "plimsoll synthetic set v2\n%s\n%s\nobjects %d\nseed %d\ncopies %d\n",
		contentDomain, s.Sizes, s.Sizes.Len(), s.seed, s.copies)
	if s.names != nil {
		for k := range s.Sizes.Len() {
			fmt.Fprintf(h, "%d %q\n", s.Size(k), s.names(k))
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// copy returns the object of the k-th of n copies of a set. Of several, each has a number before the
// extension of its name, as with sia_load_tester. Different names stay different.
func (o Object) copy(k, n int) Object {
	if n == 1 {
		return o
	}
	dir, base := path.Split(o.Name)
	ext := path.Ext(base)
	if strings.Trim(strings.TrimSuffix(base, ext), ".") == "" {
		ext = "" // .profile has no extension
	}
	o.Name = fmt.Sprintf("%s%s-%08d%s", dir, strings.TrimSuffix(base, ext), k, ext)
	return o
}
