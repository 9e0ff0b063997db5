package testbed

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/internal/words"
)

// RAMReserve is the available memory, in bytes, that RAM disks leave free: with less, the
// machine might swap or kill processes during a trial.
const RAMReserve = 256 << 20

// RAMDisk is a directory in memory.
type RAMDisk struct {
	Path string
	// Remove frees its memory, except for files that a process still has open.
	Remove func() error
}

// RAMDisk implements Machine with a tmpfs of that size, which root or a user with a mount
// namespace may mount.
func (m here) RAMDisk(name string, size int64) (d RAMDisk, err error) {
	if m.t == nil {
		return d, errors.New("testbed: RAM disk: there is no testbed to remove it")
	}
	free, err := m.AvailableMemory()
	if err != nil {
		return d, err
	}
	if float64(size) > free-RAMReserve {
		return d, fmt.Errorf("a RAM disk of %s needs %s of memory with what is left for everything else, %s are "+
			"available: end other programs, use a machine with more memory, make what is stored smaller, or leave the "+
			"RAM disk out", words.Bytes(float64(size)), words.Bytes(float64(size)+RAMReserve), words.Bytes(free))
	}
	dir, err := m.t.Scratch("ram-" + name)
	if err != nil {
		return d, err
	}
	options := fmt.Sprintf("size=%d,mode=0700", size)
	// Without noswap (Linux 6.4, real root only) a RAM disk may be swapped out.
	err = unix.Mount("plimsoll", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options+",noswap")
	if err != nil {
		err = unix.Mount("plimsoll", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
	}
	if err != nil {
		return d, errors.Join(fmt.Errorf("testbed: mount a RAM disk on %s: %w; run as root, or allow user namespaces",
			dir, err), removeMount(dir))
	}
	return RAMDisk{dir, func() error { return removeMount(dir) }}, nil
}

// removeMount removes a directory and any mount on it.
func removeMount(dir string) error {
	err := unix.Unmount(dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	switch err {
	case nil, unix.EINVAL, unix.EPERM, unix.ENOENT: // not mounted, or we may not unmount it
		return os.RemoveAll(dir)
	}
	return fmt.Errorf("testbed: unmount %s: %w", dir, err)
}
