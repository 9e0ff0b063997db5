package systemtest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

func testUpdate(t *testing.T, s Suite, n system.Store) {
	u, ok := n.(system.Updater)
	if !ok {
		t.Skip("the system has no objects whose content can be replaced")
	}
	mutable := func(name string, data []byte) system.Ref {
		t.Helper()
		ref, err := u.PutMutable(Context(t), name, int64(len(data)), bytes.NewReader(data))
		if err != nil {
			t.Fatalf("put mutable %q: %v", name, err)
		}
		wantObject(t, n, ref, data)
		return ref
	}
	ref := mutable("mutable", Bytes("mutable", 1000))
	others := map[system.Ref][]byte{
		put(t, n, "beside", Bytes("beside", 1000)):   Bytes("beside", 1000),
		mutable("other", Bytes("other mutable", 99)): Bytes("other mutable", 99),
		mutable("same", Bytes("mutable", 1000)):      Bytes("mutable", 1000), // the content that ref has
	}
	if len(others) != 3 || others[ref] != nil {
		t.Fatalf("mutable objects share refs: %s and %v", ref, others)
	}
	var last []byte
	for _, size := range []int64{1000, 5000, 20, 200 << 10} { // other bytes, larger, smaller, much larger
		last = Bytes(fmt.Sprintf("update-%d", size), size)
		if err := u.Update(Context(t), ref, size, bytes.NewReader(last)); err != nil {
			t.Fatalf("update to %d bytes: %v", size, err)
		}
		wantObject(t, n, ref, last)
	}
	if err := u.Update(Context(t), ref, 1000, Content("short", 999)); err == nil {
		t.Error("an update with a reader that ends early is no error")
	}
	wantObject(t, n, ref, last)
	for _, unknown := range s.unknown() {
		within(t, "update of an unknown ref", func() {
			if err := u.Update(Context(t), unknown, 10, Content("unknown", 10)); err == nil {
				t.Errorf("an update of unknown ref %s is no error", unknown)
			}
		})
	}
	for ref, data := range others {
		wantObject(t, n, ref, data)
	}
}
