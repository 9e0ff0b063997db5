package web

import (
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

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
		"123456": ErrTooLong} {
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
			// What is wrong must show before a receiver has all it waits for.
			if want != nil && len(got) >= 5 {
				t.Errorf("%s, %q: gave %q before it failed", name, text, got)
			}
		}
	}
	if _, err := Exactly(strings.NewReader("x"), 0); !errors.Is(err, ErrTooLong) {
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
