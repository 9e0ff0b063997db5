package testbed

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// state is a run's own directory: its scratch directories and RAM disks are in there, and a
// record of the processes to end when plimsoll dies without doing so itself. It is locked as
// long as the run lives, and removed with it. Two remove that of a dead run, with its
// processes: the watchdog, at once, and the next start of plimsoll, should the watchdog be
// dead too.
type state struct {
	dir    string
	token  string   // in the environment of all that the run starts
	lock   *os.File // the directory
	reaper *reaper
}

const (
	tokenEnv    = "PLIMSOLL_RUN"     // marks all that a run starts
	processEnv  = "PLIMSOLL_PROCESS" // marks all that one process starts
	statePrefix = "plimsoll-testbed-"
)

func newState(self string) (s *state, err error) {
	s = &state{token: rand.Text()[:13]}
	s.dir = filepath.Join(os.TempDir(), statePrefix+s.token)
	// The watchdog first: from here on we may die at any moment.
	if s.reaper, err = startReaper(self, s.dir); err != nil {
		return nil, err
	}
	for err == nil && s.lock == nil { // between the two, another plimsoll may take it for a dead run's
		if err = os.MkdirAll(groupsDir(s.dir), 0o700); err == nil {
			s.lock, err = lockState(s.dir, unix.LOCK_EX)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("testbed: the run's directory: %w", err), s.reaper.end())
	}
	return s, nil
}

// groupsDir has a file for each process group of a run, with the start time of its leader.
// Its name is that of the boot: process ids mean nothing after the next.
func groupsDir(state string) string {
	return filepath.Join(state, readLine("/proc/sys/kernel/random/boot_id"))
}

func (s *state) groupFile(pid int) string { return filepath.Join(groupsDir(s.dir), strconv.Itoa(pid)) }

func (s *state) addGroup(pid int, birth uint64) error {
	return os.WriteFile(s.groupFile(pid), strconv.AppendUint(nil, birth, 10), 0o600)
}

func (s *state) dropGroup(pid int) error { return os.Remove(s.groupFile(pid)) }

// readGroups are the start times of the leaders of a run's process groups, by process id.
func readGroups(state string) map[int]uint64 {
	groups := map[int]uint64{}
	files, _ := os.ReadDir(groupsDir(state))
	for _, f := range files {
		pid, err := strconv.Atoi(f.Name())
		if err != nil {
			continue
		}
		birth, err := strconv.ParseUint(readLine(filepath.Join(groupsDir(state), f.Name())), 10, 64)
		if err == nil { // else it was being written when the run died
			groups[pid] = birth
		}
	}
	return groups
}

// close removes the directory, and lets the watchdog go.
func (s *state) close() error {
	_, err := removeState(s.dir)
	return errors.Join(err, s.lock.Close(), s.reaper.end())
}

// removeState removes a run's directory with what is mounted in it. It names the directories in it.
func removeState(state string) (removed []string, err error) {
	entries, err := os.ReadDir(state)
	for _, e := range entries {
		dir := filepath.Join(state, e.Name())
		err = errors.Join(err, removeMount(dir))
		if dir != groupsDir(state) {
			removed = append(removed, dir)
		}
	}
	return removed, errors.Join(err, os.RemoveAll(state))
}

// lockState locks the directory of a run. Nil without an error: the run lives, or the directory is gone.
func lockState(state string, how int) (*os.File, error) {
	f, err := os.Open(state)
	if err == nil {
		if err = unix.Flock(int(f.Fd()), how); err == nil {
			_, err = os.Lstat(state) // who had the lock before may have removed it
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

// ownedByUs says whether a path is a directory of this user's, and no link to one.
func ownedByUs(dir string) bool {
	var st unix.Stat_t
	return unix.Lstat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && int(st.Uid) == os.Geteuid()
}
