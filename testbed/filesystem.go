package testbed

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Filesystem is the file system of a directory.
type Filesystem struct {
	Type   string // "ext4", "tmpfs"
	Source string // "/dev/vda1"; without a device, the source given to mount
	// Free is the number of bytes available to an ordinary user; NaN if unlimited.
	Free float64
}

// String is "ext4 on /dev/vda1", or the type alone where there is no device.
func (f Filesystem) String() string {
	if !strings.HasPrefix(f.Source, "/") && !strings.Contains(f.Source, ":") {
		return f.Type
	}
	return f.Type + " on " + f.Source
}

// Memory reports whether its files are in memory.
func (f Filesystem) Memory() bool { return f.Type == "tmpfs" || f.Type == "ramfs" }

// Filesystem implements Machine with /proc/self/mountinfo (proc_pid_mountinfo(5)): the
// last mount among those whose mount point is the longest prefix of the path.
func (here) Filesystem(dir string) (f Filesystem, err error) {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	var mounts []*procfs.MountInfo
	if err == nil {
		mounts, err = procfs.GetMounts()
	}
	var s unix.Statfs_t
	if err == nil {
		err = unix.Statfs(path, &s)
	}
	if err != nil {
		return f, fmt.Errorf("testbed: what %s is on: %w", dir, err)
	}
	f, ok := mountOf(path, mounts)
	if !ok {
		return f, fmt.Errorf("testbed: what %s is on: no mount that holds it is known to /proc/self/mountinfo", dir)
	}
	f.Free = float64(s.Bavail) * float64(s.Bsize)
	if s.Blocks == 0 { // a tmpfs without a limit
		f.Free = math.NaN()
	}
	return f, nil
}

func mountOf(path string, mounts []*procfs.MountInfo) (f Filesystem, ok bool) {
	longest := -1
	for _, m := range mounts {
		point := unescape(m.MountPoint)
		below := strings.HasPrefix(path+"/", strings.TrimSuffix(point, "/")+"/")
		if below && len(point) >= longest { // a later mount hides an earlier one
			longest, f, ok = len(point), Filesystem{Type: m.FSType, Source: unescape(m.Source)}, true
		}
	}
	return f, ok
}

// unescape decodes the octal escapes of space, tab, newline and backslash.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
