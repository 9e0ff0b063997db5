package workload

import (
	"fmt"
	"io"
)

// Mismatch is content that is not what was stored.
type Mismatch struct {
	Object Object
	At     int64  // offset of the first byte that is wrong or missing
	Why    string // "differs", "is missing", "is beyond the end"
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("object %q of %d bytes: byte %d %s", m.Object.Name, m.Object.Size, m.At, m.Why)
}

// checker compares what is written to it with an object.
type checker struct {
	object Object
	// compare takes the next bytes, may overwrite them, and returns the offset of
	// the first that differs. It is not asked about bytes beyond the end.
	compare func(p []byte) (at int64, ok bool, err error)
	close   func() error
	off     int64
	err     error // of an earlier Write
}

// Write implements [io.Writer].
func (c *checker) Write(p []byte) (n int, err error) {
	if c.err != nil {
		return 0, c.err
	}
	buf := scratch.Get().(*[checkChunk]byte)
	defer scratch.Put(buf)
	for len(p) > n {
		rest := min(int64(len(p)-n), c.object.Size-c.off, checkChunk)
		if rest == 0 {
			c.err = &Mismatch{c.object, c.object.Size, "is beyond the end"}
			return n, c.err
		}
		// A Writer must not change what it is given.
		q := buf[:copy(buf[:rest], p[n:])]
		at, ok, err := c.compare(q)
		switch {
		case err != nil:
			c.err = err
			return n, c.err
		case !ok:
			c.err = &Mismatch{c.object, at, "differs"}
			return n + int(at-c.off), c.err
		}
		n += len(q)
		c.off += int64(len(q))
	}
	return n, nil
}

// Close implements [io.Closer].
func (c *checker) Close() error {
	err := c.close()
	switch {
	case c.err != nil:
		return c.err
	case c.off < c.object.Size:
		return &Mismatch{c.object, c.off, "is missing"}
	}
	return err
}

// nopCloser adds a Close to a reader that needs none.
type nopCloser struct{ io.ReadSeeker }

func (nopCloser) Close() error { return nil }

// differs is the index of the first byte of a that is not the one of b; the two
// are known to differ within len(a).
func differs(a, b []byte) int {
	i := 0
	for a[i] == b[i] {
		i++
	}
	return i
}
