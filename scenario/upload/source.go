package upload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/plimsoll-project/plimsoll/workload"
)

// source is the content of an object while it is sent: hashed, and with what
// went wrong on our side, which is no failure of the system.
type source struct {
	from io.ReadSeekCloser
	left int64
	hash hash.Hash
	err  error // why our data could not be read
}

func openSource(set workload.Set, object int) (*source, error) {
	from, err := set.Open(object)
	if err != nil {
		return nil, err
	}
	return &source{from: from, left: set.Object(object).Size, hash: sha256.New()}, nil
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.hash.Write(p[:n])
	s.left -= int64(n)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		s.err = err
	case err != nil && s.left > 0:
		err = fmt.Errorf("it ends %d bytes too early: %w", s.left, io.ErrUnexpectedEOF)
		s.err = err
	case s.left < 0:
		err = errors.New("it is longer than it was")
		s.err = err
	}
	return n, err
}

// sum is the hash of all that was read, in hex.
func (s *source) sum() string { return hex.EncodeToString(s.hash.Sum(nil)) }

func (s *source) close() { s.from.Close() }
