package link

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Where only one goroutine runs at a time, a new one is often begun by the main thread, which must give it away for
// good, not to itself.
func TestThreadOfOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	began := time.Now()
	for range 200 {
		var tid int
		must(t, OnThread(func() error {
			tid = unix.Gettid()
			return nil
		}))
		if tid == unix.Getpid() {
			t.Fatal("it ran on the main thread")
		}
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("200 threads took %v", took)
	}
}
