package link

import (
	"context"
	"errors"
	"os"
	"testing"
)

// An emulator that cannot be started is an error, also when its launcher returns a nil process of some type.
func TestLaunchFails(t *testing.T) {
	needRoot(t)
	hub, err := os.Open("/proc/self/ns/net")
	must(t, err)
	defer hub.Close()
	type ended struct{ Process }
	want := errors.New("no room")
	launch := func(context.Context, *os.File, []*os.File) (Process, error) { return (*ended)(nil), want }
	if _, err := New(t.Context(), launch, Options{}, int(hub.Fd()), nil); !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
}
