package testbed

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// ServeNode runs the subcommands of plimsoll that a testbed starts: `node watchdog`,
// `node link` and `node image`. handled is false if args name another command. A test
// binary that creates testbeds calls it in TestMain, because the testbed starts these
// commands from its own executable.
func ServeNode(ctx context.Context, args []string) (handled bool, err error) {
	if len(args) < 2 || args[0] != "node" {
		return false, nil
	}
	switch args[1] {
	case "watchdog":
		return true, ServeWatchdog(args[2:], os.Stdin, os.Stdout)
	case "link":
		return true, link.Serve(ctx, args[2:])
	case "image":
		return true, ServeImage(args[2:])
	}
	return false, nil
}

// ServeWatchdog is `plimsoll node watchdog DIR`, the watchdog of a run. It reports on its
// output that it is ready, waits until its input closes because plimsoll has ended or
// died, and then kills the processes that the run's directory names, if it is still
// there, and removes it.
func ServeWatchdog(args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 1 {
		return errors.New("testbed: watchdog: want the run's directory as the only argument")
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	if _, err := io.WriteString(stdout, watchdogReady); err != nil {
		return fmt.Errorf("testbed: watchdog: %w", err)
	}
	if _, err := io.Copy(io.Discard, stdin); err != nil {
		return fmt.Errorf("testbed: watchdog: %w", err)
	}
	// The kernel closes the descriptors of a dying process one by one: wait for its
	// lock, not only for its pipe.
	lock, err := lockRunDir(args[0], unix.LOCK_EX)
	if lock == nil {
		return err
	}
	defer lock.Close()
	return clean(args[0])
}

// watchdog is the watchdog as seen by its run.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.Closer // its input: our death closes it
}

const (
	watchdogReady   = "ready\n"
	watchdogEnv     = "PLIMSOLL_WATCHDOG"
	watchdogTimeout = 20 * time.Second
)

// startWatchdog starts the watchdog of a run with this directory, and waits until it is ready.
func startWatchdog(self, dir string) (_ *watchdog, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("testbed: start the watchdog, %s node watchdog: %w", self, err)
		}
	}()
	if os.Getenv(watchdogEnv) != "" {
		return nil, errors.New("this is the watchdog itself: the program does not know the command (a test's " +
			"TestMain calls testbed.ServeNode)")
	}
	cmd := exec.Command(self, "node", "watchdog", dir)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1", "TMPDIR=" + os.TempDir(), watchdogEnv + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a Ctrl-C must not reach it
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	answer, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	_ = answer.(*os.File).SetReadDeadline(time.Now().Add(watchdogTimeout))
	said := make([]byte, len(watchdogReady))
	if _, err = io.ReadFull(answer, said); err != nil || string(said) != watchdogReady {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("it did not say that it is ready (%q, %v)", said, err)
	}
	return &watchdog{cmd, pipe}, nil
}

// end ends the watchdog.
func (r *watchdog) end() error {
	err := r.pipe.Close()
	if bad := r.cmd.Wait(); bad != nil {
		err = errors.Join(err, fmt.Errorf("testbed: the watchdog ended badly: %w", bad))
	}
	return err
}

// CleanDead removes what crashed runs of this user left behind (processes, RAM disks and
// scratch directories), and returns their private directories. It does not touch live runs.
func CleanDead() (removed []string, err error) {
	states, err := filepath.Glob(filepath.Join(os.TempDir(), runDirPrefix+"*"))
	for _, dir := range states {
		if !ownedByUs(dir) {
			continue
		}
		lock, failed := lockRunDir(dir, unix.LOCK_EX|unix.LOCK_NB)
		if lock != nil {
			if failed = clean(dir); failed == nil {
				removed = append(removed, dir)
			}
			_ = lock.Close()
		}
		err = errors.Join(err, failed)
	}
	return removed, err
}

// clean kills the processes of a crashed run and removes its directory.
func clean(dir string) (err error) {
	token, groups := strings.TrimPrefix(filepath.Base(dir), runDirPrefix), readGroups(dir)
	if left := killAll(func() []int { return survivors(scan(), token, groups) }); len(left) > 0 {
		err = fmt.Errorf("processes %v do not end although killed", left) // the directory stays for the next attempt
	} else {
		err = removeRunDir(dir)
	}
	if err != nil {
		err = fmt.Errorf("testbed: remove what a crashed run left in %s: %w", dir, err)
	}
	return err
}

// survivors returns the live processes that certainly belong to the run: those in the
// session of a recorded leader and not older than it, and those with the run's token in
// their environment. A pid alone proves nothing, because pids are reused.
func survivors(all map[int]stat, token string, groups map[int]uint64) (pids []int) {
	for pid, s := range all {
		if s.dead() || pid == os.Getpid() {
			continue
		}
		born, ours := groups[s.Session]
		leader, alive := all[s.Session]
		reused := alive && leader.Starttime != born // it is another session by now
		if ours && !reused && s.Starttime >= born || carries(pid, tokenEnv+"="+token) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// runDir is a run's private directory. It holds scratch directories, RAM disks, and a record
// of the processes to kill if plimsoll dies. It is locked while the run lives, and removed
// with it. The directory and processes of a crashed run are removed by its watchdog or, if
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
	// Before it is locked, another plimsoll may remove it as a crashed run's, even while it is made.
	for try := 0; err == nil && s.lock == nil; try++ {
		if err = os.MkdirAll(groupsDir(s.dir), 0o700); err == nil {
			s.lock, err = lockRunDir(s.dir, unix.LOCK_EX)
		} else if errors.Is(err, fs.ErrNotExist) && try < 10 {
			err = nil
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
