package testbed

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// A process that crashes when it is told to end has ended as it was told to, and
// it is known that it crashed; one that ends well, or is killed by us, has not.
func TestCrashedOverItsEnd(t *testing.T) {
	tb := newTestbed(t, Options{Plain: true})
	h := addHost(t, tb, "a")
	for name, c := range map[string]struct {
		script string
		want   string
	}{
		"aborts":  {`trap 'kill -ABRT $$' TERM; echo ready; while :; do sleep 0.01; done`, "aborted"},
		"ends":    {`trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done`, ""},
		"refuses": {`trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done`, ""},
		"deaf":    {`trap '' TERM QUIT; echo ready; while :; do sleep 0.01; done`, ""},
	} {
		p, err := h.start(t.Context(), Command{Name: name, Args: []string{"/bin/sh", "-c", c.script}, Stop: []StopStep{{syscall.SIGTERM, 0}, {syscall.SIGKILL, 500 * time.Millisecond}}})
		if err != nil {
			t.Fatal(err)
		}
		for limit := time.Now().Add(20 * time.Second); !strings.Contains(logTail(p.LogPath(), tailBytes, 1), "ready"); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("%s: no word of it", name)
			}
		}
		if how := p.Crashed(); how != "" {
			t.Errorf("%s: it runs, and crashed: %s", name, how)
		}
		if err := p.Stop(t.Context()); err != nil || p.Err() != nil {
			t.Errorf("%s: stop: %v, its end: %v", name, err, p.Err())
		}
		if how := p.Crashed(); (how == "") != (c.want == "") || !strings.Contains(how, c.want) {
			t.Errorf("%s: crashed %q, want %q", name, how, c.want)
		}
	}
}
