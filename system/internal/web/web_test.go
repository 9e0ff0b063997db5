package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

func TestContentRange(t *testing.T) {
	for s, want := range map[string][3]int64{
		"bytes 0-0/1":     {0, 0, 1},
		"bytes 10-19/100": {10, 19, 100},
		"bytes 10-19/*":   {10, 19, -1},
		"bytes 90-99/100": {90, 99, 100},
	} {
		a, b, n, ok := contentRange(s)
		if got := [3]int64{a, b, n}; !ok || got != want {
			t.Errorf("%q: %v %v", s, got, ok)
		}
	}
	for _, s := range []string{"", "bytes", "bytes */100", "bytes 5-4/10", "bytes 0-10/10", "items 0-1/2",
		"bytes -1-1/2", "bytes 0-/2", "bytes 0-1", "0-1/2"} {
		if _, _, _, ok := contentRange(s); ok {
			t.Errorf("%q passes", s)
		}
	}
}

func TestExactly(t *testing.T) {
	for text, want := range map[string]error{"": io.ErrUnexpectedEOF, "1234": io.ErrUnexpectedEOF, "12345": nil,
		"123456": errTooLong} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{
			"plain": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
			"data with EOF": iotest.DataErrReader, "half": iotest.HalfReader,
		} {
			r, err := Exactly(wrap(strings.NewReader(text)), 5)
			must(t, err)
			got, err := io.ReadAll(r)
			if !errors.Is(err, want) || want == nil && (err != nil || string(got) != text) {
				t.Errorf("%s, %q: %q, %v; want %v", name, text, got, err, want)
			}
			// An error must occur before the receiver has all the bytes that it expects.
			if want != nil && len(got) >= 5 {
				t.Errorf("%s, %q: gave %q before it failed", name, text, got)
			}
		}
	}
	if _, err := Exactly(strings.NewReader("x"), 0); !errors.Is(err, errTooLong) {
		t.Errorf("a byte where none belongs: %v", err)
	}
	if _, err := Exactly(strings.NewReader(""), -1); err == nil {
		t.Error("a negative size passes")
	}
}

func TestPublicURLHasNoSecrets(t *testing.T) {
	u, err := url.Parse("https://user:hunter2@host/a%20b?X-Amz-Signature=hunter2")
	must(t, err)
	if got := public(u); strings.Contains(got, "hunter2") || !strings.Contains(got, "host/a%20b") {
		t.Errorf("shown as %s", got)
	}
}

func TestStatusTellsErrorsApart(t *testing.T) {
	for status, want := range map[int]error{
		404: system.ErrNotFound, 410: system.ErrNotFound, 401: system.ErrAuth, 403: system.ErrAuth, 507: system.ErrQuota,
	} {
		if err := Meaning(status, io.EOF); !errors.Is(err, want) || !errors.Is(err, io.EOF) {
			t.Errorf("status %d: %v, want %v", status, err, want)
		}
	}
}

// silent returns no answer until the client gives up.
func silent(ctx context.Context) (*http.Response, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		wait     Wait
		deadline time.Duration
		want     error
		after    time.Duration
	}{
		"not known": {Wait{Head: 15 * time.Second, Means: system.ErrNotFound}, time.Hour, system.ErrNotFound,
			15 * time.Second},
		"a node has it": {Wait{Head: 15 * time.Second, Means: system.ErrStalled}, time.Hour, system.ErrStalled,
			15 * time.Second},
		"no limit of ours": {Wait{Means: system.ErrNotFound}, time.Hour, context.DeadlineExceeded, time.Hour},
		"the caller is less patient": {Wait{Head: 15 * time.Second, Means: system.ErrNotFound}, 3 * time.Second,
			context.DeadlineExceeded, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
				defer cancel()
				from := time.Now()
				_, err := c.wait.Do(ctx, silent)
				if took := time.Since(from); !errors.Is(err, c.want) || took != c.after {
					t.Errorf("after %v: %v; want %v after %v", took, err, c.want, c.after)
				}
				if c.want == context.DeadlineExceeded && errors.Is(err, system.ErrNotFound) {
					t.Errorf("the caller's deadline says nothing about the object: %v", err)
				}
			})
		})
	}
}

func TestDaemonGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("killed")
		alive, end := context.WithCancelCause(t.Context())
		time.AfterFunc(3*time.Second, func() { end(gone) })
		from := time.Now()
		_, err := Wait{Head: time.Hour, Alive: alive}.Do(t.Context(), silent)
		if took := time.Since(from); !errors.Is(err, gone) || errors.Is(err, system.ErrNotFound) ||
			took != 3*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}
