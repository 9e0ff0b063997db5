package web

import "io"

// Exactly returns a reader of the first size bytes of r. If r ends early, it fails, so that no part
// is stored as an object.
func Exactly(r io.Reader, size int64) io.Reader { return &exactly{io.LimitedReader{R: r, N: size}} }

type exactly struct{ io.LimitedReader }

func (e *exactly) Read(p []byte) (int, error) {
	n, err := e.LimitedReader.Read(p)
	if err == io.EOF && e.N > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
