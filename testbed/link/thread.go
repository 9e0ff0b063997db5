package link

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// OnThread runs f on a separate OS thread that is destroyed afterwards: what f does to the
// thread (entering a namespace, dropping a capability) affects no other goroutine.
func OnThread(f func() error) error {
	errc := make(chan error, 1)
	StartThread(func() { errc <- f() })
	return <-errc
}

// StartThread starts f on a new OS thread, which ends with f. It avoids the main thread:
// the runtime cannot end it, so it would stay in the namespace that f entered and keep it
// alive, and /proc/self describes the main thread.
func StartThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			begun := make(chan struct{})
			go func() { // locks another thread before the main one may run other goroutines again
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

// InNamespace runs f on a separate thread inside a network namespace, given by its descriptor.
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

// prioritize gives every thread of the process the highest priority that it may have. Only
// SCHED_FIFO keeps departures on time when the machine is busy.
//
// It applies to every thread, not only to those of the data path: every 10 ms Go's
// scheduler takes a goroutine off its thread, even a locked one, and needs another thread
// to put it back. On a busy machine a normal thread is tens of milliseconds late. Threads
// that are started later inherit the priority.
func prioritize() {
	fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 10}
	if !everyThread(func(tid int) error { return unix.SchedSetAttr(tid, &fifo, 0) }) {
		everyThread(func(tid int) error { return unix.Setpriority(unix.PRIO_PROCESS, tid, -20) })
	}
}

// everyThread applies f to all threads; false if it fails on one that has not ended.
func everyThread(f func(tid int) error) bool {
	tasks, err := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		tid, _ := strconv.Atoi(t.Name())
		if err := f(tid); err != nil && err != unix.ESRCH {
			return false
		}
	}
	return err == nil
}
