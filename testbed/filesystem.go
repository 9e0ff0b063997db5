package testbed

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Filesystem is what a directory is on.
type Filesystem struct {
	Type   string // "ext4", "tmpfs"
	Source string // "/dev/vda1"; for one without a device, what it was mounted as
}

// String is "ext4 on /dev/vda1", or the type alone where there is no device.
func (f Filesystem) String() string {
	if !strings.HasPrefix(f.Source, "/") && !strings.Contains(f.Source, ":") {
		return f.Type
	}
	return f.Type + " on " + f.Source
}

// Memory reports whether it keeps its files in memory.
func (f Filesystem) Memory() bool { return f.Type == "tmpfs" || f.Type == "ramfs" }

// FilesystemOf finds the file system of a directory, which must exist, in
// /proc/self/mountinfo (proc_pid_mountinfo(5)): the last of the mounts whose mount
// point is the longest that the path begins with.
func FilesystemOf(dir string) (Filesystem, error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return Filesystem{}, fmt.Errorf("testbed: what %s is on: %w", dir, err)
	}
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Filesystem{}, fmt.Errorf("testbed: what %s is on: %w", dir, err)
	}
	f, ok := mountOf(path, string(b))
	if !ok {
		return f, fmt.Errorf("testbed: what %s is on: no mount that holds it is known to /proc/self/mountinfo", dir)
	}
	return f, nil
}

func mountOf(path, mountinfo string) (f Filesystem, ok bool) {
	longest := -1
	for line := range strings.Lines(mountinfo) {
		// 36 35 98:0 /root /mount/point options optional… - type source super
		before, after, cut := strings.Cut(line, " - ")
		fields, what := strings.Fields(before), strings.Fields(after)
		if !cut || len(fields) < 5 || len(what) < 2 {
			continue
		}
		point := unescape(fields[4])
		if len(point) >= longest && within(path, point) { // a later mount hides an earlier one
			longest, f, ok = len(point), Filesystem{unescape(what[0]), unescape(what[1])}, true
		}
	}
	return f, ok
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// unescape undoes the octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
