package systemtest

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
)

// within fails the test when something that must be told soon takes long.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	from := time.Now()
	do()
	if took := time.Since(from); took > soon {
		t.Errorf("%s took %v", what, took)
	}
}

// ask is each way to ask for an object that n has and that changes nothing.
func ask(n system.Getter) map[string]func(context.Context, system.Ref) error {
	ways := map[string]func(context.Context, system.Ref) error{
		"get": func(ctx context.Context, ref system.Ref) error { return n.Get(ctx, ref, io.Discard) },
	}
	if r, ok := n.(system.Ranger); ok {
		ways["range"] = func(ctx context.Context, ref system.Ref) error { return r.GetRange(ctx, ref, 0, 1, io.Discard) }
	}
	if s, ok := n.(system.Stater); ok {
		ways["stat"] = func(ctx context.Context, ref system.Ref) error { _, err := s.Stat(ctx, ref); return err }
	}
	return ways
}

// testUnknown asks for what nobody stored.
func testUnknown(t *testing.T, s Suite, n system.Getter) {
	for _, ref := range s.unknown() {
		for how, get := range ask(n) {
			within(t, how+" of an unknown ref", func() {
				if err := get(Context(t), ref); !errors.Is(err, system.ErrNotFound) {
					t.Errorf("%s of unknown ref %q: %v, want ErrNotFound", how, ref, err)
				}
			})
		}
	}
}

// testBadRefs asks for what cannot be: a caller's mistake, which must neither
// reach another object nor be searched for.
func testBadRefs(t *testing.T, s Suite, n system.Getter) {
	refs := append([]system.Ref{
		"", "/", "../../etc/passwd", "..", "%2e%2e%2fetc%2fpasswd", "a\x00b", "new\nline", "?x=y", "http://127.0.0.1:1/",
	}, s.Truths.Malformed...)
	if s.Truths.Unknown != nil {
		refs = append(refs, "no-such-object")
	}
	for how, get := range ask(n) {
		within(t, how+" of malformed refs", func() {
			for _, ref := range refs {
				if err := get(Context(t), ref); !errors.Is(err, system.ErrBadRef) && !errors.Is(err, system.ErrNotFound) {
					t.Errorf("%s of malformed ref %.40q: %v, want ErrBadRef or ErrNotFound", how, ref, err)
				}
			}
		})
	}
}
