package scenario

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// A trace that is no regular file is refused at once: a pipe nobody writes to
// would be waited for without end.
func TestATraceIsARegularFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "trace")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir, "/dev/zero"} {
		refused := make(chan error, 1)
		go func() {
			_, err := DataSet(t.Context(), experiment.Data{Trace: path}, 1, dir)
			refused <- err
		}()
		select {
		case err := <-refused:
			if err == nil {
				t.Errorf("%s was read", path)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s is waited for", path)
		}
	}
}
