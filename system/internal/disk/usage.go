package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/plimsoll-project/plimsoll/system"
)

// blockUnit is the unit of st_blocks, whatever the file system's block size.
const blockUnit = 512

// Usage is what the trees below dirs hold; dirs are not to overlap. Absolute is
// the apparent size of their regular files, Disk the blocks of all they hold,
// directories and dirs themselves included; a file with several names is one
// inode and counted once. Objects is −1: only the system knows how it lays them
// out. What is named [Probe] is ours, and left out. Symbolic links are not
// followed; what vanishes during the walk counts or does not.
func Usage(dirs ...string) (system.Holdings, error) {
	u := usage{seen: map[inode]bool{}}
	u.total.Objects = -1
	for _, dir := range dirs {
		if err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			return u.add(path == dir, e, err)
		}); err != nil {
			return system.Holdings{}, fmt.Errorf("disk usage of %s: %w", dir, err)
		}
	}
	u.total.Inodes = int64(len(u.seen))
	return u.total, nil
}

type inode struct{ device, number uint64 }

type usage struct {
	total system.Holdings
	seen  map[inode]bool
}

// add counts one entry. WalkDir comes with an error when it cannot look at the
// root, and a second time to a directory that it cannot read.
func (u *usage) add(root bool, e fs.DirEntry, err error) error {
	switch {
	case err != nil && (root || !vanished(err)):
		return err
	case err != nil:
		return nil
	case !root && e.Name() == Probe && e.IsDir():
		return fs.SkipDir
	case !root && e.Name() == Probe:
		return nil
	}
	info, err := e.Info()
	if err != nil {
		if !root && vanished(err) {
			return nil
		}
		return err
	}
	if !root {
		u.total.Entries++
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("the file system has no inodes")
	}
	id := inode{st.Dev, st.Ino}
	if u.seen[id] {
		return nil
	}
	u.seen[id] = true
	u.total.Disk += st.Blocks * blockUnit
	if info.Mode().IsRegular() {
		u.total.Absolute += info.Size()
	}
	return nil
}

// vanished: deleted, or replaced by something that is no directory.
func vanished(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
