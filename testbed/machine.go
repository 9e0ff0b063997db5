package testbed

import (
	"math"
	"runtime"

	"github.com/prometheus/procfs"
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

// IOPressure implements Machine.
func (here) IOPressure() float64 {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return math.NaN()
	}
	p, err := fs.PSIStatsForResource("io")
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
