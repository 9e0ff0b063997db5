package web

import (
	"errors"
	"fmt"
	"io"
)

// ErrTooLong: a reader has more than its size says.
var ErrTooLong = errors.New("the reader has more bytes than the size says")

// Exactly returns a reader of exactly size bytes of r: one that ends early or
// goes on fails before the last byte is given, so that no object is stored
// that is not the one meant.
func Exactly(r io.Reader, size int64) (io.Reader, error) {
	if size < 0 {
		return nil, fmt.Errorf("a size of %d bytes", size)
	}
	e := &exactly{r: r, left: size}
	if size == 0 {
		return e, e.end()
	}
	return e, nil
}

type exactly struct {
	r    io.Reader
	left int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.r.Read(p)
	e.left -= int64(n)
	switch {
	case err != nil && err != io.EOF:
		return 0, err
	case e.left == 0:
		if err != io.EOF {
			err = e.end()
		} else {
			err = nil
		}
		if err != nil {
			return 0, err
		}
		return n, io.EOF
	case err == io.EOF:
		return 0, fmt.Errorf("the reader ended %d bytes early: %w", e.left, io.ErrUnexpectedEOF)
	}
	return n, nil
}

// end asks for a byte that must not be there.
func (e *exactly) end() error {
	if e.r == nil {
		return nil
	}
	var one [1]byte
	switch n, err := io.ReadFull(e.r, one[:]); {
	case n > 0:
		return ErrTooLong
	case err == io.EOF:
		return nil
	default:
		return err
	}
}
