package workload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Set is a data set: objects in a fixed order, each of which can be made again
// from the set's parameters (or read again from its directory), so that no copy
// has to be kept in order to verify what a system returns.
type Set interface {
	// Len is the number of objects.
	Len() int
	// Object describes the i-th; it reads no content.
	Object(i int) Object
	// Open reads the i-th object's content.
	Open(i int) (io.ReadSeekCloser, error)
	// Fingerprint identifies names, sizes and, as far as it is known without
	// reading it, content: the same for two sets that are the same, in hex.
	Fingerprint() string
}

// Object is one object of a set.
type Object struct {
	Name string // with slashes; unique within the set
	Size int64  // bytes
}

// Check compares what is written to it with the i-th object of a set, byte by byte:
// Write fails at the first byte that differs or lies beyond the end, Close
// when the object was not complete.
func Check(s Set, i int) (io.WriteCloser, error) {
	want, err := s.Open(i)
	if err != nil {
		return nil, err
	}
	return &checker{object: s.Object(i), want: want}, nil
}

type checker struct {
	object Object
	want   io.ReadCloser
	off    int64
	err    error // of an earlier Write
}

// chunks are buffers for what objects hold.
var chunks = sync.Pool{New: func() any { return new([checkChunk]byte) }}

// Write implements [io.Writer].
func (c *checker) Write(p []byte) (n int, err error) {
	buf := chunks.Get().(*[checkChunk]byte)
	defer chunks.Put(buf)
	for n < len(p) && c.err == nil {
		got := p[n:min(n+checkChunk, len(p))]
		same, err := io.ReadFull(c.want, buf[:len(got)])
		switch want := buf[:same]; {
		case !bytes.Equal(got[:same], want):
			for same = 0; got[same] == want[same]; same++ {
			}
			c.err = c.mismatch(int64(same), errDiffers)
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			c.err = c.mismatch(int64(same), errBeyond)
		default:
			c.err = err
		}
		n, c.off = n+same, c.off+int64(same)
	}
	return n, c.err
}

// ErrMissing is an object that ended too early.
var ErrMissing = errors.New("is missing")

var errDiffers, errBeyond = errors.New("differs"), errors.New("is beyond the end")

func (c *checker) mismatch(at int64, how error) error {
	return fmt.Errorf("object %q of %d bytes: byte %d %w", c.object.Name, c.object.Size, c.off+at, how)
}

// Close implements [io.Closer].
func (c *checker) Close() error {
	err := c.want.Close()
	switch {
	case c.err != nil:
		return c.err
	case c.off < c.object.Size:
		return c.mismatch(0, ErrMissing)
	}
	return err
}
