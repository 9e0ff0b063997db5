// Package timing calls functions at intervals, waits, and measures the CPU time of this process.
package timing

import (
	"context"
	"syscall"
	"time"
)

// Every calls f at intervals until stop is called. stop waits for a running call and may be called
// twice.
func Every(d time.Duration, f func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f()
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// SelfCPU returns the CPU seconds of this process, user and system.
func SelfCPU() float64 {
	cpu, _ := Self()
	return cpu
}

// Self returns the CPU seconds of this process, and its peak resident set in bytes.
func Self() (cpu, rssPeak float64) {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails only for wrong arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds(), float64(u.Maxrss) * 1024
}

// Pause waits for d. It returns false if ctx ends before.
func Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
