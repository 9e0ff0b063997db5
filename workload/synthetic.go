package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Synthetic is a set of seeded content: every object is computed when it is
// asked for, so a million of them take no memory.
type Synthetic struct {
	sizes Sizes // of n objects
	names Names
	opt   Options
	n     int
}

// Names names the objects of a set. Nil means numbers: 00000000.bin.
type Names interface {
	Name(i int) string // unique
}

// Options of a synthetic set.
type Options struct {
	Seed uint64
	// Copies is how often the set is there, each time with other content and under
	// other names; 0 is 1.
	Copies int
}

// NewSynthetic makes a set of an object for each of the sizes.
func NewSynthetic(sizes Sizes, names Names, opt Options) (*Synthetic, error) {
	n := sizes.Len()
	if opt.Copies == 0 {
		opt.Copies = 1
	}
	switch {
	case n < 1 || opt.Copies < 1:
		return nil, errors.New("workload: a data set has at least one object")
	case n > maxObjects/opt.Copies:
		return nil, fmt.Errorf("workload: %d copies of %d objects are more than %d objects", opt.Copies, n, maxObjects)
	}
	return &Synthetic{sizes, names, opt, n}, nil
}

// maxObjects is beyond what any system was ever asked to hold in a test.
const maxObjects = 1 << 40

// Len implements Set.
func (s *Synthetic) Len() int { return s.n * s.opt.Copies }

// Object implements Set.
func (s *Synthetic) Object(i int) Object {
	k := i % s.n
	var name string
	if s.names != nil {
		name = s.names.Name(k)
	} else {
		name = number(k)
	}
	if s.opt.Copies > 1 {
		name = copyName(name, i/s.n)
	}
	return Object{Name: name, Size: s.sizes.Size(k)}
}

// content is numbered over all copies.
func (s *Synthetic) content(i int) Content {
	return Content{Seed: s.opt.Seed, Index: uint64(i), Size: s.sizes.Size(i % s.n)}
}

// Open implements Set.
func (s *Synthetic) Open(i int) (io.ReadSeekCloser, error) {
	return nopCloser{s.content(i).Reader()}, nil
}

// Check implements Set.
func (s *Synthetic) Check(i int) (io.WriteCloser, error) {
	r := s.content(i).Reader()
	return &checker{
		object:  s.Object(i),
		compare: func(p []byte) (int64, bool, error) { at, ok := r.Check(p); return at, ok, nil },
		close:   func() error { return nil },
	}, nil
}

// Fingerprint implements Set. It covers the content, too.
func (s *Synthetic) Fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "plimsoll synthetic set v2\n%s\n%s\nobjects %d\nseed %d\ncopies %d\n",
		contentDomain, s.sizes, s.n, s.opt.Seed, s.opt.Copies)
	if s.names != nil {
		for k := range s.n {
			fmt.Fprintf(h, "%d %q\n", s.sizes.Size(k), s.names.Name(k))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// copyName is the name of an object in the copy-th copy of a set: a number
// before the extension, as in sia_load_tester. Different names stay different.
func copyName(name string, copy int) string {
	dir, base := path.Split(name)
	ext := path.Ext(base)
	if strings.Trim(strings.TrimSuffix(base, ext), ".") == "" {
		ext = "" // .profile has no extension
	}
	return fmt.Sprintf("%s%s-%08d%s", dir, strings.TrimSuffix(base, ext), copy, ext)
}
