package systemtest

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

func testSettle(t *testing.T, s Suite, n system.Store) {
	st, ok := n.(system.Settler)
	if !ok {
		t.Skip("what the system accepts is durable")
	}
	data := Bytes("settle", 100_000)
	ref := put(t, n, "settle", data)
	for range 2 { // what is settled stays so
		if err := st.Settle(Context(t), ref); err != nil {
			t.Fatalf("settle: %v", err)
		}
	}
	wantObject(t, n, ref, data)
	seeded, err := system.Seed(Context(t), n, "settle-seeded", 1000, bytes.NewReader(Bytes("settle-seeded", 1000)))
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Settle(Context(t), seeded); err != nil {
		t.Errorf("settle a seeded object: %v", err)
	}
	for _, unknown := range s.unknown() {
		within(t, "settle of an unknown ref", func() {
			if err := st.Settle(Context(t), unknown); err == nil {
				t.Errorf("unknown ref %s is settled", unknown)
			}
		})
	}
	ctx, cancel := context.WithCancel(Context(t))
	cancel()
	within(t, "settle with a context that ended before", func() {
		if err := st.Settle(ctx, put(t, n, "settle-never", Bytes("settle-never", 2000))); !errors.Is(err, context.Canceled) {
			t.Errorf("settle with a context that ended before: %v", err)
		}
	})
}
