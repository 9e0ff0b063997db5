package systemtest

import (
	"bytes"
	"context"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

func testCool(t *testing.T, s Suite, n system.Store) {
	c, ok := n.(system.Cooler)
	if !ok {
		t.Skip("the system keeps nothing near the client")
	}
	data, other := Bytes("cool", mib+3), Bytes("cool-other", 50_000)
	ref, err := system.Seed(Context(t), n, "cool", int64(len(data)), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	warm, err := system.Seed(Context(t), n, "cool-other", int64(len(other)), bytes.NewReader(other))
	if err != nil {
		t.Fatal(err)
	}
	wantObject(t, n, warm, other)
	for range 3 { // before it was read, and after
		if err := c.Cool(Context(t), ref); err != nil {
			t.Fatalf("cool: %v", err)
		}
		wantObject(t, n, ref, data)
	}
	if err := c.Cool(Context(t), ref); err != nil {
		t.Fatalf("cool: %v", err)
	}
	if r, ok := n.(system.Ranger); ok {
		var got bytes.Buffer
		if err := r.GetRange(Context(t), ref, mib/2, 1000, &got); err != nil || !bytes.Equal(got.Bytes(), data[mib/2:mib/2+1000]) {
			t.Errorf("range of a cold object: %d bytes, %v", got.Len(), err)
		}
	}
	wantObject(t, n, warm, other)
	// What was put may be nowhere else: then it may not be made to be forgotten.
	own := Bytes("cool-own", 10_000)
	ours := put(t, n, "cool-own", own)
	if err := c.Cool(Context(t), ours); err != nil {
		t.Logf("cool an object that was put: %v", err)
	}
	wantObject(t, n, ours, own)
	for _, unknown := range s.unknown() {
		within(t, "cool of an unknown ref", func() {
			if err := c.Cool(Context(t), unknown); err == nil {
				t.Errorf("unknown ref %s is said to be cold", unknown)
			}
		})
	}
	ctx, cancel := context.WithCancel(Context(t))
	cancel()
	if err := c.Cool(ctx, ref); err == nil {
		t.Error("cool with a context that ended before: no error")
	}
}
