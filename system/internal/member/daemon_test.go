package member

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
)

// TestLeavesAreNotAsked: where nodes pass nothing on, leechers ask publishers only.
func TestLeavesAreNotAsked(t *testing.T) {
	k := &Kind{Name: "some", Leaf: true}
	if _, err := k.task("x", []string{"a"}); !errors.Is(err, system.ErrNotFound) {
		t.Errorf("never published: %v", err)
	}
	for _, address := range []string{"a", "b"} {
		k.publish("x", json.RawMessage(`1`), address)
		k.publish("y", json.RawMessage(`2`), address)
	}
	want := func(ref system.Ref, from ...string) {
		t.Helper()
		got, err := k.task(ref, []string{"c", "b", "d", "a"})
		if err != nil || !slices.Equal(got.From, from) {
			t.Errorf("%s is asked of %v (%v), want %v", ref, got.From, err, from)
		}
	}
	want("x", "b", "a")
	k.drop("x", "b")
	want("x", "a")
	want("y", "b", "a")
	k.drop("", "a") // it restarts empty
	want("x", "c", "b", "d", "a")
	want("y", "b")
	k.Leaf = false
	want("y", "c", "b", "d", "a")
}
