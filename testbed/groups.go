package testbed

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// groupsOf are the directories below root of the control groups (version 2) in a /proc/PID/cgroup: the group's
// own and those around it, as each may hold back what is in it. In a container its own group is the top of what
// can be seen: a path that is not there has no files.
func groupsOf(root, own string) (dirs []string) {
	for line := range strings.Lines(own) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		for dir := filepath.Join(root, path); ok && strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// ourGroups are those of this process; without control groups none.
func ourGroups() []string {
	own, _ := os.ReadFile("/proc/self/cgroup")
	return groupsOf("/sys/fs/cgroup", string(own))
}

// groupNumber is the last word of a group's file, or of one line of it; NaN where it is no number, as where
// there is no limit ("max").
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

// AvailableMemory implements Machine: what the kernel says is available (MemAvailable,
// which counts on the page cache) or, where a control group of ours leaves less, that.
func (here) AvailableMemory() (bytes float64, err error) {
	fs, err := procfs.NewDefaultFS()
	var m procfs.Meminfo
	if err == nil {
		m, err = fs.Meminfo()
	}
	if err == nil && m.MemAvailableBytes == nil {
		err = errors.New("the kernel does not tell it")
	}
	if err != nil {
		return 0, fmt.Errorf("testbed: available memory: %w", err)
	}
	return min(float64(*m.MemAvailableBytes), memoryLeft(ourGroups())), nil
}

// memoryLeft is what groups leave of their limits, the tightest of them; without a limit infinite.
// Pages of files do not count: the kernel drops them when it needs room.
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

// ThrottledSample is the control group of plimsoll and of what it starts, if that has a CPU limit:
// CPU is the seconds of the scheduler's periods in which the limit held back what wanted to run.
// The kernel's throttled time is no such thing: it adds up the waits of all CPUs.
const ThrottledSample = "throttled"

// throttled adds up for how long groups have held back what is in them; NaN where none has a limit.
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
