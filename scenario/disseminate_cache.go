package scenario

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// dropPageCache makes the kernel write what is dirty and forget what it has of
// files in memory, of the whole machine (proc(5), drop_caches). Root may.
func dropPageCache(ctx context.Context) error {
	done := make(chan error, 1)
	go func() {
		unix.Sync() // only what is clean can be dropped
		err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("1\n"), 0)
		if err != nil {
			err = fmt.Errorf("empty the page cache: %w", err)
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done(): // a disk that is so slow to write: the goroutine ends with the kernel's call
		return fmt.Errorf("empty the page cache: the disk still writes: %w", context.Cause(ctx))
	}
}
