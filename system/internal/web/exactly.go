package web

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// ErrTooLong means that a reader has more bytes than its size.
var ErrTooLong = errors.New("the reader has more bytes than the size says")

// Exactly returns a reader of exactly size bytes of r. If r ends early or has more, it fails before
// it returns the last byte, so that no wrong object is stored.
func Exactly(r io.Reader, size int64) (io.Reader, error) {
	if size < 0 {
		return nil, fmt.Errorf("a size of %d bytes", size)
	}
	e := &exactly{r: bufio.NewReader(r), left: size}
	if size == 0 && r != nil {
		return e, e.end()
	}
	return e, nil
}

type exactly struct {
	r    *bufio.Reader
	left int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(p[:min(int64(len(p)), e.left)])
	e.left -= int64(n)
	switch {
	case e.left > 0 && err == io.EOF:
		return n, fmt.Errorf("the reader ended %d bytes early: %w", e.left, io.ErrUnexpectedEOF)
	case e.left > 0:
		return n, err
	}
	if err := e.end(); err != nil {
		return 0, err
	}
	return n, io.EOF
}

// end returns an error if there is another byte.
func (e *exactly) end() error {
	switch _, err := e.r.Peek(1); err {
	case nil:
		return ErrTooLong
	case io.EOF:
		return nil
	default:
		return err
	}
}
