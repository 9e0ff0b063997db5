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
	sizes Sizes
	names Names
	opt   Options
	dup   duplicates
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
	// Compressible is the share of each object that compresses to nearly nothing.
	Compressible float64
	// Duplicate is the share of the objects of each copy that are, in size and
	// content, an earlier one of it: every original as likely as any other.
	Duplicate float64
}

// NewSynthetic makes a set of n objects: those of sizes are the originals. With
// duplicates there are more objects than originals; [Originals] returns how
// many originals n objects have.
func NewSynthetic(n int, sizes Sizes, names Names, opt Options) (*Synthetic, error) {
	if opt.Copies == 0 {
		opt.Copies = 1
	}
	switch {
	case n < 1 || opt.Copies < 1:
		return nil, errors.New("workload: a data set has at least one object")
	case !(opt.Compressible >= 0 && opt.Compressible <= 1) || !(opt.Duplicate >= 0 && opt.Duplicate <= 1):
		return nil, fmt.Errorf("workload: shares of %v and %v are not between 0 and 1", opt.Compressible, opt.Duplicate)
	case n > maxObjects/opt.Copies:
		return nil, fmt.Errorf("workload: %d copies of %d objects are more than %d objects", opt.Copies, n, maxObjects)
	}
	s := &Synthetic{sizes: sizes, names: names, opt: opt, dup: newDuplicates(n, opt.Duplicate, opt.Seed)}
	if sizes.Len() != s.dup.originals(n) {
		return nil, fmt.Errorf("workload: %d sizes for %d different objects", sizes.Len(), s.dup.originals(n))
	}
	return s, nil
}

// maxObjects is beyond what any system was ever asked to hold in a test.
const maxObjects = 1 << 40

// Originals is how many of n objects have content of their own when share of
// them are duplicates.
func Originals(n int, share float64) int { return newDuplicates(n, share, 0).originals(n) }

// Len implements Set.
func (s *Synthetic) Len() int { return s.dup.n * s.opt.Copies }

// Object implements Set.
func (s *Synthetic) Object(i int) Object {
	k := i % s.dup.n
	var name string
	if s.names != nil {
		name = s.names.Name(k)
	} else {
		name = number(k)
	}
	if s.opt.Copies > 1 {
		name = copyName(name, i/s.dup.n)
	}
	return Object{Name: name, Size: s.sizes.Size(s.dup.rank(k))}
}

// stream reads and compares content.
type stream interface {
	io.ReadSeeker
	Check(p []byte) (at int64, ok bool)
}

func (s *Synthetic) stream(i int) stream {
	rank := s.dup.rank(i % s.dup.n)
	c := Content{Seed: s.opt.Seed, Index: uint64(i/s.dup.n)*uint64(s.sizes.Len()) + uint64(rank), Size: s.sizes.Size(rank)}
	if s.opt.Compressible > 0 {
		return Compressible{c, s.opt.Compressible}.Reader()
	}
	return c.Reader()
}

// Open implements Set.
func (s *Synthetic) Open(i int) (io.ReadSeekCloser, error) { return nopCloser{s.stream(i)}, nil }

// Check implements Set.
func (s *Synthetic) Check(i int) (io.WriteCloser, error) {
	st := s.stream(i)
	return &checker{
		object:  s.Object(i),
		compare: func(p []byte) (int64, bool, error) { at, ok := st.Check(p); return at, ok, nil },
		close:   func() error { return nil },
	}, nil
}

// Fingerprint implements Set. It covers the content, too.
func (s *Synthetic) Fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "plimsoll synthetic set v1\n%s\n%s\nobjects %d\nseed %d\ncopies %d\ncompressible %v\nduplicate %v\n",
		contentDomain, s.sizes, s.dup.n, s.opt.Seed, s.opt.Copies, s.opt.Compressible, s.opt.Duplicate)
	if s.names != nil {
		for k := range s.dup.n {
			fmt.Fprintf(h, "%d %q\n", s.sizes.Size(s.dup.rank(k)), s.names.Name(k))
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
