package link

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// prioritize gives every thread of the process what precision it may have, and
// says what that is: "fifo", "nice -20" or "normal". Only SCHED_FIFO keeps
// departures on time when the machine is busy.
//
// Every thread, not only that of the data path: Go's scheduler takes a goroutine
// off its thread every 10 ms, even one that is locked to it, and needs another
// thread to put it back. On a busy machine an ordinary one comes tens of
// milliseconds late. Threads that are started later inherit the priority.
func prioritize() string {
	fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 10}
	switch {
	case everyThread(func(tid int) error { return unix.SchedSetAttr(tid, &fifo, 0) }):
		return "fifo"
	case everyThread(func(tid int) error { return unix.Setpriority(unix.PRIO_PROCESS, tid, -20) }):
		return "nice -20"
	}
	return "normal"
}

// everyThread applies f to all threads until there is none that it does not know;
// false when it fails on one that exists.
func everyThread(f func(tid int) error) bool {
	done := map[int]bool{}
	for again := true; again; {
		again = false
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return false
		}
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil || done[tid] {
				continue
			}
			if err := f(tid); err != nil && err != unix.ESRCH {
				return false
			}
			done[tid], again = true, true
		}
	}
	return true
}
