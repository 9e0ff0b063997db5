package link

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnThread runs f on an OS thread of its own that is destroyed afterwards:
// what f does to the thread (a namespace entered, a capability dropped) can
// reach no other goroutine.
func OnThread(f func() error) error {
	errc := make(chan error, 1)
	StartThread(func() { errc <- f() })
	return <-errc
}

// StartThread starts f on a new OS thread which ends with f. Never the main
// thread: the runtime cannot end that one, so it would stay in whatever
// namespace f entered and keep it alive, and /proc/self describes it.
func StartThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			begun := make(chan struct{})
			go func() { // on another thread, and locked to that before the main one may run anything again
				runtime.LockOSThread()
				close(begun)
				f()
			}()
			<-begun
			runtime.UnlockOSThread()
			return
		}
		f() // returning while locked ends the thread
	}()
}

// InNamespace runs f on a thread of its own inside a network namespace, by its descriptor.
func InNamespace(ns int, f func() error) error {
	return OnThread(func() error {
		if err := Enter(ns); err != nil {
			return err
		}
		return f()
	})
}

// Enter moves this thread into a network namespace.
func Enter(ns int) error {
	if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace: %w", err)
	}
	return nil
}
