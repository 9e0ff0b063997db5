package testbed

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

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
	bytes = float64(*m.MemAvailableBytes)
	own, _ := os.ReadFile("/proc/self/cgroup") // without: no control groups
	if left, limited := groupLeaves("/sys/fs/cgroup", string(own)); limited {
		bytes = min(bytes, left)
	}
	return bytes, nil
}

// groupLeaves is what the control groups named in a /proc/PID/cgroup leave of
// their limits, the tightest of them and of those above. Pages of files do not
// count: the kernel drops them when it needs room.
func groupLeaves(root, own string) (left float64, limited bool) {
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		top, limit, used := root, "memory.max", "memory.current"
		switch {
		case f[1] == "": // version 2
		case strings.Contains(","+f[1]+",", ",memory,"):
			top, limit, used = filepath.Join(root, "memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"
		default:
			continue
		}
		// A container sees its own group as the root: a path that is not there is skipped.
		for dir := filepath.Join(top, f[2]); strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
			most, err1 := number(filepath.Join(dir, limit))
			now, err2 := number(filepath.Join(dir, used))
			if err1 != nil || err2 != nil { // "max", or the root of all
				continue
			}
			free := max(0, most-now+filePages(filepath.Join(dir, "memory.stat")))
			if !limited || free < left {
				left, limited = free, true
			}
		}
	}
	return left, limited
}

func number(file string) (float64, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
}

// filePages are the bytes of the page cache in a memory.stat.
func filePages(file string) (sum float64) {
	f, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		name, value, _ := strings.Cut(sc.Text(), " ")
		if name == "active_file" || name == "inactive_file" {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				sum += v
			}
		}
	}
	return sum
}
