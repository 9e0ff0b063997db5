package testbed

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// runDir is a run's private directory. It holds scratch directories, RAM disks, and a record
// of the processes to kill if plimsoll dies. It is locked while the run lives, and removed
// with it. The directory and processes of a dead run are removed by its watchdog or, if
// that is dead too, by the next start of plimsoll.
type runDir struct {
	dir      string
	token    string   // in the environment of every process of the run
	lock     *os.File // the directory
	watchdog *watchdog
}

const (
	tokenEnv     = "PLIMSOLL_RUN"     // marks all processes of a run
	processEnv   = "PLIMSOLL_PROCESS" // marks one process and its descendants
	runDirPrefix = "plimsoll-testbed-"
)

func newRunDir(self string) (s *runDir, err error) {
	s = &runDir{token: rand.Text()[:13]}
	s.dir = filepath.Join(os.TempDir(), runDirPrefix+s.token)
	// The watchdog comes first: we may die at any moment.
	if s.watchdog, err = startWatchdog(self, s.dir); err != nil {
		return nil, err
	}
	for err == nil && s.lock == nil { // before it is locked, another plimsoll may remove it as a dead run's
		if err = os.MkdirAll(groupsDir(s.dir), 0o700); err == nil {
			s.lock, err = lockRunDir(s.dir, unix.LOCK_EX)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("testbed: the run's directory: %w", err), s.watchdog.end())
	}
	return s, nil
}

// groupsDir has an empty file for each process group of a run. Its name is the boot id, because
// process ids are meaningless after a reboot.
func groupsDir(dir string) string {
	return filepath.Join(dir, readLine("/proc/sys/kernel/random/boot_id"))
}

// groupFile is named after the process id of a group's leader and its start time.
func (p *process) groupFile() string {
	return filepath.Join(groupsDir(p.host.t.runDir.dir), fmt.Sprintf("%d-%d", p.pid, p.birth))
}

// readGroups returns the start times of the leaders of a run's process groups, by process id.
func readGroups(dir string) map[int]uint64 {
	groups := map[int]uint64{}
	files, _ := os.ReadDir(groupsDir(dir))
	for _, f := range files {
		var pid int
		var birth uint64
		if _, err := fmt.Sscanf(f.Name(), "%d-%d", &pid, &birth); err == nil {
			groups[pid] = birth
		}
	}
	return groups
}

// close removes the directory and ends the watchdog.
func (s *runDir) close() error {
	return errors.Join(removeRunDir(s.dir), s.lock.Close(), s.watchdog.end())
}

// removeRunDir removes a run's directory and the mounts in it.
func removeRunDir(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, removeMount(filepath.Join(dir, e.Name())))
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// lockRunDir locks the directory of a run. It returns nil without an error if the run lives or the directory is gone.
func lockRunDir(dir string, how int) (*os.File, error) {
	f, err := os.Open(dir)
	if err == nil {
		if err = unix.Flock(int(f.Fd()), how); err == nil {
			_, err = os.Lstat(dir) // the previous holder of the lock may have removed it
		}
		if err == nil {
			return f, nil
		}
		_ = f.Close()
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, err
}

// ownedByUs reports whether a path is a directory of this user, and not a link to one.
func ownedByUs(dir string) bool {
	var st unix.Stat_t
	return unix.Lstat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == os.Geteuid()
}
