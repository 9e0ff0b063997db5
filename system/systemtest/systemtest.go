// Package systemtest is the conformance suite: every system goes through the
// same cases, so that what is built on the contract need not know which it has.
package systemtest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// Suite is one system in one configuration.
type Suite struct {
	System  system.System
	Options system.Options
	// MaxObject bounds the size of the large streamed put; 0: 64 MiB.
	MaxObject int64
	// ReadOnly: there is no Put; the objects are those of Attach.
	ReadOnly bool
	// Deployment prepares an attach (a server of the test's own); nil: start.
	Attach func(t *testing.T) system.Options
}

// Main is the TestMain of a package with an embedded system: the test binary
// then is the program whose `node NAME` the system starts.
func Main(m *testing.M, s system.Embedded) {
	if len(os.Args) > 2 && os.Args[1] == "node" && os.Args[2] == s.Info().Name {
		if err := s.Serve(context.Background(), os.Args[3:], os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Need skips the test when the system cannot be started here, or fails it when
// PLIMSOLL_REQUIRE (a list: "nginx,versitygw") says that it must be there.
func Need(t *testing.T, name string, problems []system.Problem) {
	t.Helper()
	if len(problems) == 0 {
		return
	}
	text := fmt.Sprintf("%s is not to be had here: %v", name, problems)
	if slices.Contains(strings.Split(os.Getenv("PLIMSOLL_REQUIRE"), ","), name) {
		t.Fatal(text)
	}
	t.Skip(text)
}

// Context ends with the test, or after a minute.
func Context(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Content is a stream of size bytes that differ by seed.
func Content(seed string, size int64) io.Reader {
	return io.LimitReader(&stream{seed: seed}, size)
}

// stream repeats no block: SHA-256 in counter mode.
type stream struct {
	seed string
	n    int
	buf  []byte
}

func (s *stream) Read(p []byte) (int, error) {
	if len(s.buf) == 0 {
		sum := sha256.Sum256(fmt.Append(nil, s.seed, s.n))
		s.buf, s.n = sum[:], s.n+1
	}
	n := copy(p, s.buf)
	s.buf = s.buf[n:]
	return n, nil
}
