package testbed

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// groupsOf returns the directories below root of the control group (version 2) in a /proc/PID/cgroup and of the
// groups around it, as each of them may have limits. In a container only its own group is visible; directories
// that do not exist have no limits.
func groupsOf(root, own string) (dirs []string) {
	for line := range strings.Lines(own) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for dir := filepath.Join(root, path); ok && strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// ourGroups returns the control groups of this process.
func ourGroups() []string {
	own, _ := os.ReadFile("/proc/self/cgroup")
	return groupsOf("/sys/fs/cgroup", string(own))
}

// groupNumber returns the last word of a group's file, or of one line of it; NaN if it is not a number, such as
// "max" where there is no limit.
func groupNumber(dir, file, line string) float64 {
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
	return math.NaN()
}

// AvailableMemory implements Machine: the kernel's MemAvailable (which includes most of the
// page cache) or what our control groups leave, whichever is less.
func (here) AvailableMemory() (bytes float64, err error) {
	m, err := procFS().Meminfo()
	if err == nil && m.MemAvailableBytes == nil {
		err = errors.New("the kernel does not report it")
	}
	if err != nil {
		return 0, fmt.Errorf("testbed: available memory: %w", err)
	}
	return min(float64(*m.MemAvailableBytes), memoryLeft(ourGroups())), nil
}

// memoryLeft returns what the tightest of the groups leaves of its limit; infinite without a limit.
// Cached pages of files do not count as used: the kernel drops them when it needs memory.
func memoryLeft(groups []string) float64 {
	left := math.Inf(1)
	for _, dir := range groups {
		free := groupNumber(dir, "memory.max", "") - groupNumber(dir, "memory.current", "")
		for _, pages := range []string{"active_file", "inactive_file"} {
			if n := groupNumber(dir, "memory.stat", pages); !math.IsNaN(n) {
				free += n
			}
		}
		if !math.IsNaN(free) {
			left = min(left, max(0, free))
		}
	}
	return left
}

// ThrottledSample describes the control group of plimsoll and its processes, if it has a CPU
// limit: CPU is the length, in seconds, of the scheduler's periods in which the limit stopped
// runnable tasks. The kernel's throttled time differs: it sums the waits of all CPUs.
const ThrottledSample = "throttled"

// throttled sums the length of the throttled periods of groups; NaN if none has a limit.
func throttled(groups []string) float64 {
	sum := math.NaN()
	for _, dir := range groups {
		if !(groupNumber(dir, "cpu.stat", "nr_periods") > 0) { // no limit
			continue
		}
		period := groupNumber(dir, "cpu.max", "") / 1e6
		if !(period > 0) {
			period = 0.1 // the kernel's default
		}
		if held := groupNumber(dir, "cpu.stat", "nr_throttled") * period; math.IsNaN(sum) {
			sum = held
		} else {
			sum += held
		}
	}
	return sum
}
