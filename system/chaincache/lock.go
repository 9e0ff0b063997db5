package chaincache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lock waits for the file's lock, which ends with the process that holds it.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		f, err := try(path)
		if err != nil {
			return nil, err
		}
		if f != nil {
			return func() { f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("another process is making this chain and holds %s: %w", path, context.Cause(ctx))
		case <-again.C:
		}
	}
}

// try is nil when another has the lock, or has just removed its file.
func try(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
			return nil, nil
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	ours, err1 := f.Stat()
	there, err2 := os.Stat(path)
	if err1 != nil || err2 != nil || !os.SameFile(ours, there) {
		f.Close()
		return nil, nil
	}
	return f, nil
}
