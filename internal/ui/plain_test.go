package ui

import (
	"strings"
	"testing"
)

func TestPlain(t *testing.T) {
	const evil = "a\x1b]0;title\x07b\u009b2Jc\r\x7fd\te\n5 µs ½ → «é» 漢字"
	const want = "a?]0;title?b?2Jc??d\te\n5 µs ½ → «é» 漢字"
	for size := 1; size <= len(evil); size++ { // a character may be split between two writes
		var b strings.Builder
		w := Plain(&b)
		for rest := evil; rest != ""; {
			n := min(size, len(rest))
			if k, err := w.Write([]byte(rest[:n])); k != n || err != nil {
				t.Fatal(k, err)
			}
			rest = rest[n:]
		}
		if b.String() != want {
			t.Fatalf("in pieces of %d: %q, want %q", size, b.String(), want)
		}
	}
	var out, err strings.Builder
	u := New(&out, &err)
	u.Say("%s", evil)
	u.Error(WithHint(errorText(evil), evil))
	if strings.ContainsAny(err.String(), "\x1b\x07\u009b\r") || strings.Count(err.String(), want) != 3 {
		t.Errorf("said %q", err.String())
	}
}

type errorText string

func (e errorText) Error() string { return string(e) }
