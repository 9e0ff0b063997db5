package systemtest

import (
	"bytes"
	"context"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

func testDirectory(t *testing.T, s Suite, n system.Store) {
	d, ok := n.(system.Directory)
	if !ok {
		t.Skip("the system has no directories of their own")
	}
	mkdir := func(name string) system.Ref {
		t.Helper()
		ref, err := d.MakeDirectory(Context(t), name)
		if err != nil || ref == "" {
			t.Fatalf("make directory %q: %q, %v", name, ref, err)
		}
		return ref
	}
	one, two := mkdir("one"), mkdir("two")
	if one == two {
		t.Fatalf("two directories share the ref %s", one)
	}
	want := map[system.Ref][]byte{}
	enter := func(dir system.Ref, name, seed string) error {
		data := Bytes(seed, 3000)
		ref, err := d.PutIn(Context(t), dir, name, 3000, bytes.NewReader(data))
		if err == nil && ref == "" {
			t.Errorf("put in %s as %q: empty ref", dir, name)
		}
		if err == nil {
			want[ref] = data
		}
		return err
	}
	for _, c := range []struct {
		dir        system.Ref
		name, seed string
	}{{one, "a", "first"}, {one, "b", "second"}, {two, "a", "in the other"}, {one, "../a b%20/☃", "odd name"}} {
		if err := enter(c.dir, c.name, c.seed); err != nil {
			t.Errorf("put in %s as %q: %v", c.dir, c.name, err)
		}
	}
	if len(want) != 4 {
		t.Errorf("4 entries have %d refs", len(want))
	}
	// The same name once more: a refusal or a new entry, as the system likes.
	// Its ref may be that of the older entry, which then is the new object.
	if err := enter(one, "b", "second again"); err != nil {
		t.Logf("the same name twice: %v", err)
	}
	for ref, data := range want {
		wantObject(t, n, ref, data)
	}
	for _, unknown := range s.unknown() {
		within(t, "put in an unknown directory", func() {
			if ref, err := d.PutIn(Context(t), unknown, "x", 3000, Content("nowhere", 3000)); err == nil {
				t.Errorf("put in unknown directory %s: %s and no error", unknown, ref)
			}
		})
	}
	ctx, cancel := context.WithCancel(Context(t))
	cancel()
	if _, err := d.PutIn(ctx, one, "never", 5, Content("never", 5)); err == nil {
		t.Error("put in a directory with a context that ended before: no error")
	}
}
