package testbed

import (
	"fmt"
	"math"
	"runtime"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// here is the machine that this program runs on.
type here struct{ t *Testbed }

// Here returns the machine that this program runs on. Without a testbed it creates no RAM
// disks.
func Here() Machine { return here{} }

// Name implements Machine.
func (here) Name() string { return "" }

// CPUs implements Machine.
func (here) CPUs() int { return runtime.NumCPU() }

// Filesystem is the file system of a directory.
type Filesystem struct {
	Free   float64 // bytes available to an ordinary user; NaN if unlimited
	Memory bool    // its files are in memory
}

// Filesystem implements Machine.
func (here) Filesystem(dir string) (f Filesystem, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return f, fmt.Errorf("testbed: the file system of %s: %w", dir, err)
	}
	f.Memory = s.Type == unix.TMPFS_MAGIC || s.Type == unix.RAMFS_MAGIC
	f.Free = float64(s.Bavail) * float64(s.Bsize)
	if s.Blocks == 0 { // a tmpfs without a limit
		f.Free = math.NaN()
	}
	return f, nil
}

// IOPressure implements Machine.
func (here) IOPressure() float64 {
	p, err := procFS().PSIStatsForResource("io")
	if err != nil || p.Some == nil {
		return math.NaN()
	}
	return float64(p.Some.Total) / 1e6
}

// ThreadCPU returns the CPU seconds of each thread of a process by thread id; empty where
// the kernel does not report them.
func ThreadCPU(pid int) map[int]float64 {
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return nil
	}
	all := map[int]float64{}
	for _, t := range threads {
		if s, err := t.Schedstat(); err == nil { // else it has ended
			all[t.PID] = float64(s.RunningNanoseconds) / 1e9
		}
	}
	return all
}
