package testbed

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// ThrottledSample is the control group of plimsoll and of what it starts, if that has a CPU limit:
// CPU is the seconds of the scheduler's periods in which the limit held back what wanted to run.
// The kernel's throttled time is no such thing: it adds up the waits of all CPUs.
const ThrottledSample = "throttled"

// throttled is that sample's CPU; NaN where no group has a limit. In a container its own group is the
// top of what can be seen.
func throttled() float64 {
	self, err := procfs.Self()
	if err != nil {
		return math.NaN()
	}
	groups, _ := self.Cgroups()
	for _, g := range groups {
		top := "/sys/fs/cgroup"
		if g.HierarchyID != 0 { // version 1
			if !slices.Contains(g.Controllers, "cpu") {
				continue
			}
			top = filepath.Join(top, strings.Join(g.Controllers, ","))
		}
		if s := throttledIn(top, g.Path); !math.IsNaN(s) {
			return s
		}
	}
	return math.NaN()
}

// throttledIn adds up a group and those around it, as each may hold it back; NaN where none has a limit.
func throttledIn(top, group string) float64 {
	sum := math.NaN()
	for dir := filepath.Clean(group); ; dir = filepath.Dir(dir) {
		if s := throttledBy(filepath.Join(top, dir)); math.IsNaN(sum) {
			sum = s
		} else if !math.IsNaN(s) {
			sum += s
		}
		if dir == "/" {
			return sum
		}
	}
}

// throttledBy is for how long one group has held back what is in it.
func throttledBy(dir string) (seconds float64) {
	stat, _ := os.ReadFile(filepath.Join(dir, "cpu.stat"))
	seconds = math.NaN()
	for line := range strings.Lines(string(stat)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		v, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case name == "nr_periods" && v == 0: // no limit
			return math.NaN()
		case name == "nr_throttled":
			seconds = v * period(dir)
		}
	}
	return seconds
}

// period is how long the periods of a group are, in seconds.
func period(dir string) float64 {
	text, err := os.ReadFile(filepath.Join(dir, "cpu.max")) // "quota period"
	if err != nil {
		text, _ = os.ReadFile(filepath.Join(dir, "cpu.cfs_period_us")) // version 1
	}
	words := strings.Fields(string(text))
	if len(words) > 0 {
		if micros, err := strconv.ParseFloat(words[len(words)-1], 64); err == nil && micros > 0 {
			return micros / 1e6
		}
	}
	return 0.1 // the kernel's default
}
