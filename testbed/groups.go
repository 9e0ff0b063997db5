package testbed

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// groupsOf are the directories below root of the control groups, in a /proc/PID/cgroup, that a
// controller limits: each with those around it, as each may hold back what is in it. In a container
// its own group is the top of what can be seen: a path that is not there has no files.
func groupsOf(root, own, controller string) (dirs []string) {
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		top := root
		if f[1] != "" { // version 1
			if !slices.Contains(strings.Split(f[1], ","), controller) {
				continue
			}
			top = filepath.Join(root, f[1])
		}
		for dir := filepath.Join(top, f[2]); strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// ourGroups are those of this process; without control groups none.
func ourGroups(controller string) []string {
	own, _ := os.ReadFile("/proc/self/cgroup")
	return groupsOf("/sys/fs/cgroup", string(own), controller)
}

// groupNumber is the last word of a group's file, which has another name in version 1, or that of one line of
// it; NaN where it is no number, as where there is no limit ("max").
func groupNumber(dir, line string, files ...string) float64 {
	for _, file := range files {
		b, err := os.ReadFile(filepath.Join(dir, file))
		text := "\n" + string(b)
		if line != "" {
			_, text, _ = strings.Cut(text, "\n"+line+" ")
			text, _, _ = strings.Cut(text, "\n")
		}
		if words := strings.Fields(text); err == nil && len(words) > 0 {
			if v, err := strconv.ParseFloat(words[len(words)-1], 64); err == nil {
				return v
			}
		}
	}
	return math.NaN()
}

// AvailableMemory implements Machine: what the kernel says is available (MemAvailable,
// which counts on the page cache) or, where a control group of ours leaves less, that.
func (here) AvailableMemory() (bytes float64, err error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, fmt.Errorf("testbed: available memory: %w", err)
	}
	m, err := fs.Meminfo()
	if err != nil {
		return 0, fmt.Errorf("testbed: available memory: %w", err)
	}
	if m.MemAvailableBytes == nil {
		return 0, fmt.Errorf("testbed: available memory: the kernel does not tell it")
	}
	return min(float64(*m.MemAvailableBytes), memoryLeft(ourGroups("memory"))), nil
}

// memoryLeft is what groups leave of their limits, the tightest of them; without a limit infinite.
// Pages of files do not count: the kernel drops them when it needs room.
func memoryLeft(groups []string) float64 {
	left := math.Inf(1)
	for _, dir := range groups {
		free := groupNumber(dir, "", "memory.max", "memory.limit_in_bytes") -
			groupNumber(dir, "", "memory.current", "memory.usage_in_bytes")
		for _, pages := range []string{"active_file", "inactive_file"} {
			if n := groupNumber(dir, pages, "memory.stat"); !math.IsNaN(n) {
				free += n
			}
		}
		if !math.IsNaN(free) {
			left = min(left, max(0, free))
		}
	}
	return left
}

// ThrottledSample is the control group of plimsoll and of what it starts, if that has a CPU limit:
// CPU is the seconds of the scheduler's periods in which the limit held back what wanted to run.
// The kernel's throttled time is no such thing: it adds up the waits of all CPUs.
const ThrottledSample = "throttled"

// throttled adds up for how long groups have held back what is in them; NaN where none has a limit.
func throttled(groups []string) float64 {
	sum := math.NaN()
	for _, dir := range groups {
		if !(groupNumber(dir, "nr_periods", "cpu.stat") > 0) { // no limit
			continue
		}
		period := groupNumber(dir, "", "cpu.max", "cpu.cfs_period_us") / 1e6
		if !(period > 0) {
			period = 0.1 // the kernel's default
		}
		if held := groupNumber(dir, "nr_throttled", "cpu.stat") * period; math.IsNaN(sum) {
			sum = held
		} else {
			sum += held
		}
	}
	return sum
}
