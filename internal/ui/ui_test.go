package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestErrorsCarryHintAndStatus(t *testing.T) {
	base := errors.New("wallet is locked")
	err := fmt.Errorf("siad: %w", Exit(CodePreconditions, WithHint(base, "unlock it")))
	if Hint(err) != "unlock it" || ExitCode(err) != CodePreconditions || !errors.Is(err, base) {
		t.Errorf("hint %q, status %d", Hint(err), ExitCode(err))
	}
	for _, c := range []struct {
		err  error
		want Code
	}{{nil, CodeOK}, {base, CodeInternal}, {fmt.Errorf("x: %w", context.Canceled), CodeInterrupted},
		{errors.Join(base, Exit(CodeUsage, base)), CodeUsage}} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v: status %d, want %d", c.err, got, c.want)
		}
	}
	var out, errs bytes.Buffer
	u := New(&out, &errs)
	u.Error(err)
	if got, want := errs.String(), "plimsoll: siad: wallet is locked\nhint: unlock it\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if out.Len() != 0 {
		t.Errorf("an error went to standard output: %q", out.String())
	}
	u.JSON = true
	u.Error(err)
	if got, want := out.String(),
		`{"hint":"unlock it","text":"siad: wallet is locked","type":"error"}`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNoProgressWhereNobodyWatches(t *testing.T) {
	var out, errs bytes.Buffer
	u := New(&out, &errs)
	u.Progress("half way")
	if errs.Len()+out.Len() != 0 {
		t.Errorf("progress was written to what is no terminal: %q", errs.String())
	}
}

func TestLongLinesAreBrokenOnATerminal(t *testing.T) {
	var errs bytes.Buffer
	u := New(&bytes.Buffer{}, &errs)
	u.width = 30
	u.Say("note: the machine is busy: others use its CPU")
	u.Say("hint: continue it: plimsoll resume runs/quickstart")
	want := "note: the machine is busy:\n  others use its CPU\nhint: continue it: plimsoll resume runs/quickstart\n"
	if got := errs.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

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
