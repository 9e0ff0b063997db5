package link

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

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
