package testbed

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// RAMReserve is what is left of the available memory for everything else: a RAM
// disk of more would have the machine swap or kill, in the middle of a trial.
const RAMReserve = 256 << 20

// sharedMemory is a directory in memory that any user may write to.
const sharedMemory = "/dev/shm"

// RAMDisk is a directory in memory.
type RAMDisk struct {
	Path string
	On   string // what it is: "tmpfs of 2.0 GiB", "tmpfs (/dev/shm)"
	// Remove gives its memory back. Whoever has a file in it open keeps that much of
	// it until it is closed.
	Remove func() error
}

// MemoryError is a RAM disk for which there is not enough memory. Numbers in bytes.
type MemoryError struct {
	Want, Free float64
	Of         string // where there is too little: empty for the machine
}

func (e *MemoryError) Error() string {
	if e.Of != "" {
		return fmt.Sprintf("a RAM disk of %s does not fit into %s, which has %s free", inGiB(e.Want), e.Of, inGiB(e.Free))
	}
	return fmt.Sprintf("a RAM disk of %s needs %s of memory with what is left for everything else, %s are available", inGiB(e.Want), inGiB(e.Want+RAMReserve), inGiB(e.Free))
}

// Hint implements the interface that the terminal asks for hints.
func (e *MemoryError) Hint() string {
	if e.Of != "" {
		return "remove what others left in " + e.Of + ", make it larger (mount -o remount,size=… " + e.Of + "), run as root, or allow user namespaces"
	}
	return "end other programs, use a machine with more memory, make what is stored smaller, or leave the RAM disk out"
}

func inGiB(bytes float64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.0f MiB", bytes/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", bytes/(1<<30))
}

// RAMDisk implements Machine: a tmpfs of that size where we may mount, which is in a
// mount namespace of our own or as root of the machine, else a directory of /dev/shm,
// which nothing limits.
func (m here) RAMDisk(name string, size int64) (d RAMDisk, err error) {
	if m.t == nil {
		return d, errors.New("testbed: RAM disk: there is no testbed to remove it")
	}
	free, err := m.AvailableMemory()
	if err != nil {
		return d, err
	}
	if size <= 0 {
		size = int64(max(0, free-RAMReserve) / 2)
	}
	if size <= 0 || float64(size) > free-RAMReserve {
		return d, &MemoryError{Want: float64(size), Free: free}
	}
	dir := filepath.Join(os.TempDir(), scratchPrefix+"ram-"+sanitize(name)+"-"+rand.Text()[:10])
	if d, err = m.t.mountRAM(dir, size); err == nil || !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.ENODEV) {
		return d, err
	}
	return m.t.sharedRAM(filepath.Join(sharedMemory, filepath.Base(dir)), size)
}

// mountRAM mounts a tmpfs that holds size bytes.
func (t *Testbed) mountRAM(dir string, size int64) (RAMDisk, error) {
	if err := t.state.addMount(dir); err != nil { // first, lest we die between the two
		return RAMDisk{}, fmt.Errorf("testbed: RAM disk: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return RAMDisk{}, fmt.Errorf("testbed: RAM disk: %w", err)
	}
	options := fmt.Sprintf("size=%d,mode=0700", size)
	// Without noswap (Linux 6.4, root of the machine) a RAM disk may be on the disk.
	err := unix.Mount("plimsoll", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options+",noswap")
	if err != nil {
		err = unix.Mount("plimsoll", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
	}
	if err != nil {
		return RAMDisk{}, errors.Join(fmt.Errorf("testbed: mount a RAM disk on %s: %w", dir, err), os.Remove(dir), t.state.drop(dir))
	}
	return RAMDisk{Path: dir, On: "tmpfs of " + inGiB(float64(size)), Remove: func() error { return t.removeRAM(dir) }}, nil
}

// sharedRAM makes a directory where any user may keep files in memory.
func (t *Testbed) sharedRAM(dir string, size int64) (RAMDisk, error) {
	on, err := here{}.Filesystem(sharedMemory)
	if err != nil {
		return RAMDisk{}, fmt.Errorf("testbed: RAM disk: nothing can be mounted here (run as root, or allow user namespaces), and %w", err)
	}
	if !on.Memory() {
		return RAMDisk{}, fmt.Errorf("testbed: RAM disk: nothing can be mounted here, and %s is %s, not in memory: run as root, or allow user namespaces", sharedMemory, on)
	}
	if on.Free < float64(size) { // false for NaN: not limited
		return RAMDisk{}, &MemoryError{Want: float64(size), Free: on.Free, Of: sharedMemory}
	}
	if err := t.state.addDir(dir); err != nil {
		return RAMDisk{}, fmt.Errorf("testbed: RAM disk: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return RAMDisk{}, fmt.Errorf("testbed: RAM disk: %w", err)
	}
	return RAMDisk{Path: dir, On: on.Type + " (" + sharedMemory + ")", Remove: func() error { return t.removeRAM(dir) }}, nil
}

func (t *Testbed) removeRAM(dir string) error {
	if err := removeMount(dir); err != nil {
		return fmt.Errorf("testbed: remove the RAM disk %s: %w", dir, err)
	}
	return t.state.drop(dir)
}

// removeMount removes a directory and what is mounted there, if anything is.
func removeMount(dir string) error {
	for range math.MaxUint8 { // one mount may lie upon another; never for ever
		err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) || errors.Is(err, fs.ErrNotExist) {
			break // nothing is mounted there, or it is not ours to say
		}
		if err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}
