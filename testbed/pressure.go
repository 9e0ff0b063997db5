package testbed

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

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

// ThreadCPU is the CPU seconds of each thread of a process, by its id; empty where
// the kernel does not tell.
func ThreadCPU(pid int) map[int]float64 {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "task")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	all := map[int]float64{}
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name(), "schedstat"))
		if err != nil {
			continue // it has ended
		}
		ran, _, _ := strings.Cut(string(raw), " ")
		if ns, err := strconv.ParseFloat(ran, 64); err == nil {
			all[tid] = ns / 1e9
		}
	}
	return all
}
