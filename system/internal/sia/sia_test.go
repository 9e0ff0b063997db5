package sia

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// TestPollIsFineAndDoesNotFlood checks in virtual time that a state is reported at most 2 % or 5 ms
// after it occurs, with few calls.
func TestPollIsFineAndDoesNotFlood(t *testing.T) {
	for _, when := range []time.Duration{0, 3 * time.Millisecond, 34 * time.Millisecond, 251 * time.Millisecond,
		2 * time.Second, 84 * time.Second, time.Hour, 200 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			from, asked := time.Now(), 0
			err := Poll(t.Context(), "sia", "it", func(context.Context) (bool, string, error) {
				asked++
				return time.Since(from) >= when, "", nil
			})
			late := time.Since(from) - when
			if allowed := max(when/50, 5*time.Millisecond); err != nil || late < 0 || late > allowed {
				t.Errorf("%v: told %v late, allowed %v, %v", when, late, allowed, err)
			}
			if most := 850; asked > most {
				t.Errorf("%v: asked %d times", when, asked)
			}
		})
	}
}

func TestPollEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("too long"))
		defer cancel()
		err := Poll(ctx, "sia", "the moon did not rise", func(context.Context) (bool, string, error) {
			return false, "it is dark", nil
		})
		if err == nil || err.Error() != "sia: the moon did not rise: too long (last: it is dark)" {
			t.Errorf("got %v", err)
		}
		broken := errors.New("broken")
		err = Poll(t.Context(), "sia", "", func(context.Context) (bool, string, error) { return false, "", broken })
		if err != broken {
			t.Errorf("got %v", err)
		}
	})
}

func TestPaths(t *testing.T) {
	mark := func(run string) string { return system.Deployment{Write: true, Run: run}.Mark() }
	marked := func(run string) *Renter {
		return &Renter{API: &API{System: "sia"}, Prefix: "plimsoll/", Mark: mark(run)}
	}
	one, other := marked(""), marked("")
	ref := one.Named("a/b")
	if one.Name(ref) != "a/b" || ref == other.Named("a/b") || !one.Ours(string(ref)) || other.Ours(string(ref)) {
		t.Errorf("%q of marks %s and %s", ref, one.Mark, other.Mark)
	}
	if p, err := other.Path(ref); err != nil || p != string(ref) {
		t.Errorf("%q, %v", p, err)
	}
	again := marked("0123abcd")
	if ref := marked("0123abcd").Named("a/b"); again.Named("a/b") != ref || again.Name(ref) != "a/b" ||
		!again.Ours(string(ref)) {
		t.Errorf("another session of the run has other names than that of %q", ref)
	}
	if mark("0123abcd") == mark("0123abce") {
		t.Error("two runs have one mark")
	}
	for ref, want := range map[system.Ref]error{
		"": system.ErrBadRef, "plimsoll/../x": system.ErrBadRef, "plimsoll//x": system.ErrBadRef,
		"/plimsoll/x": system.ErrBadRef,
		"plimsoll":    system.ErrNotFound, "elsewhere/x": system.ErrNotFound,
	} {
		if _, err := one.Path(ref); !errors.Is(err, want) || !strings.HasPrefix(err.Error(), "sia: ") {
			t.Errorf("%q: %v, want %v", ref, err, want)
		}
	}
}

func TestRangesAreCutToTheObject(t *testing.T) {
	o := &Renter{API: &API{System: "sia"}, Ask: func(context.Context, system.Ref) (int64, error) { return 100, nil }}
	for _, c := range []struct {
		off, count, asked int64
		short             bool
	}{{0, 100, 100, false}, {90, 20, 10, true}, {100, 0, -1, false}, {100, 1, -1, true}, {5, 0, -1, false}} {
		asked := int64(-1)
		err := o.Range(t.Context(), "x", c.off, c.count, func(_ string, n int64) error { asked = n; return nil })
		if asked != c.asked || errors.Is(err, io.ErrUnexpectedEOF) != c.short || (err != nil) != c.short {
			t.Errorf("%+v: asked for %d, %v", c, asked, err)
		}
	}
	if err := o.Range(t.Context(), "x", -1, 1, nil); err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

func TestHastings(t *testing.T) {
	for text, ok := range map[string]bool{`"1"`: true, `1`: true, `null`: true, `"-5"`: true, `"1e5"`: false,
		`"x"`: false, `{}`: false} {
		var h Hastings
		if err := h.UnmarshalJSON([]byte(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
