package testbed

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// ThrottledSample is the control group of plimsoll and of what it starts, if that has a CPU limit:
// CPU is the seconds for which the limit held back what wanted to run.
const ThrottledSample = "throttled"

// throttled is that sample's CPU: of our group or of one around it, which was held back longest; NaN
// where none has a limit. In a container its own group is the top of what can be seen.
func throttled() float64 {
	longest := math.NaN()
	self, err := procfs.Self()
	if err != nil {
		return longest
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
		for dir := filepath.Clean(g.Path); ; dir = filepath.Dir(dir) {
			if s := throttledIn(filepath.Join(top, dir, "cpu.stat")); !(s <= longest) && !math.IsNaN(s) {
				longest = s
			}
			if dir == "/" {
				break
			}
		}
	}
	return longest
}

// throttledIn reads a group's statistics; NaN where it has no limit, or does not exist.
func throttledIn(path string) (seconds float64) {
	seconds = math.NaN()
	f, err := os.Open(path)
	if err != nil {
		return seconds
	}
	defer f.Close()
	limited := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		v, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case name == "nr_periods":
			limited = v > 0
		case name == "throttled_usec":
			seconds = v / 1e6
		case name == "throttled_time": // version 1
			seconds = v / 1e9
		}
	}
	if !limited {
		return math.NaN()
	}
	return seconds
}
