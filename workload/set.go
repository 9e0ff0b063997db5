package workload

import (
	"bytes"
	"errors"
	"io"
	"slices"
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
