// Package workload defines what is stored and when it is requested: object sizes, seeded content
// that can be verified without a copy, and arrival processes as pure functions of time.
package workload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Set is a data set: objects in a fixed order. Each can be generated again from the set's
// parameters (or read again from its directory), so verifying what a system returns requires no
// copy.
type Set interface {
	// Len returns the number of objects.
	Len() int
	// Object describes the i-th object; it reads no content.
	Object(i int) Object
	// Open returns a reader of the i-th object's content.
	Open(i int) (io.ReadSeekCloser, error)
	// Fingerprint identifies names, sizes and, as far as it is known without reading it, content.
	// It is in hex, and equal for equal sets.
	Fingerprint() string
}

// Object is one object of a set.
type Object struct {
	Name string // with slashes; unique within the set
	Size int64  // bytes
}

// Check returns a writer that compares what is written to it with the i-th object of a set, byte by
// byte. Write fails at a byte that differs or lies beyond the end, Close if the object was
// incomplete.
func Check(s Set, i int) (io.WriteCloser, error) {
	want, err := s.Open(i)
	if err != nil {
		return nil, err
	}
	return &checker{want: want, left: s.Object(i).Size}, nil
}

type checker struct {
	want io.ReadCloser
	left int64
	err  error // from an earlier Write
	buf  [checkChunk]byte
}

// Write implements [io.Writer].
func (c *checker) Write(p []byte) (n int, err error) {
	for got := range slices.Chunk(p, checkChunk) {
		if c.err == nil {
			_, c.err = io.ReadFull(c.want, c.buf[:len(got)])
			if errors.Is(c.err, io.EOF) || errors.Is(c.err, io.ErrUnexpectedEOF) ||
				c.err == nil && !bytes.Equal(got, c.buf[:len(got)]) {
				c.err = errDiffers
			}
		}
		if c.err != nil {
			return n, c.err
		}
		n, c.left = n+len(got), c.left-int64(len(got))
	}
	return n, nil
}

// ErrMissing means that an object ended too early.
var ErrMissing = errors.New("the object is not complete")

var errDiffers = errors.New("the bytes are not the object's")

// Close implements [io.Closer].
func (c *checker) Close() error {
	err := c.want.Close()
	switch {
	case c.err != nil:
		return c.err
	case c.left > 0:
		return ErrMissing
	}
	return err
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

// number returns the name of the i-th object if it has no other name.
func number(i int) string { return fmt.Sprintf("%08d.bin", i) }

// checkName returns an error for names that could leave a directory or that some systems do not
// accept.
func checkName(name string) error {
	switch {
	case !utf8.ValidString(name):
		return fmt.Errorf("the name %q is not valid UTF-8", name)
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("the name %q has a zero byte", name)
	case path.Clean("/"+name) != "/"+name:
		return fmt.Errorf("the name %q is not a plain path: it ends in a slash, or a part is empty or dots", name)
	}
	return nil
}

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

// Directory is a set of the files of a directory tree, sorted by path.
type Directory struct {
	root   string
	copies int
	files  []file
}

type file struct {
	Object   // its name is the path relative to the root
	modified time.Time
}

// ReadDirectory lists the tree below root. The set contains its regular files. It does not contain
// symbolic links, because they may lead out of the tree or in circles, or special files (devices,
// sockets, pipes), because they may never end. The root itself may be a link. It fails for a
// directory that cannot be listed and for a file whose name cannot be used. It opens no file, so an
// unreadable file is an error only when it is opened.
//
// copies is how often the set contains the files: the same content under different names.
func ReadDirectory(ctx context.Context, root string, copies int) (Set, error) {
	d := &Directory{root: filepath.Clean(root), copies: copies}
	err := fs.WalkDir(os.DirFS(d.root), ".", func(name string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if err := checkName(name); err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			d.files = append(d.files, file{Object{name, info.Size()}, info.ModTime()})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("data set %s: %w", root, err)
	}
	if len(d.files) == 0 {
		return nil, fmt.Errorf("data set %s has no regular file", root)
	}
	slices.SortFunc(d.files, func(a, b file) int { return strings.Compare(a.Name, b.Name) })
	return d, nil
}

// Len implements Set.
func (d *Directory) Len() int { return len(d.files) * d.copies }

// Object implements Set.
func (d *Directory) Object(i int) Object {
	return d.files[i%len(d.files)].copy(i/len(d.files), d.copies)
}

// Open implements Set. It fails if the file has changed since it was listed.
func (d *Directory) Open(i int) (io.ReadSeekCloser, error) {
	e := d.files[i%len(d.files)]
	f, err := os.Open(filepath.Join(d.root, filepath.FromSlash(e.Name)))
	if err != nil {
		return nil, fmt.Errorf("data set: %w", err)
	}
	info, err := f.Stat()
	if err == nil && (info.Size() != e.Size || !info.ModTime().Equal(e.modified)) {
		err = fmt.Errorf("%s has changed since the data set was read: it had %d bytes, written at %v, and now has %d, "+
			"written at %v", e.Name, e.Size, e.modified, info.Size(), info.ModTime())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("data set: %w", err)
	}
	return f, nil
}

// Fingerprint implements Set. It covers paths, sizes and modification times, but not the location
// of the tree.
func (d *Directory) Fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "plimsoll directory set v1\ncopies %d\nplimsoll manifest 1\n", d.copies)
	for _, f := range d.files {
		fmt.Fprintf(h, "%d\t%d\t%q\n", f.Size, f.modified.UnixNano(), f.Name)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
