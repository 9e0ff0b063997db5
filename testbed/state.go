package testbed

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// state is a run's will: a file of JSON lines that says what is to be removed
// when plimsoll dies without doing so itself. It is locked as long as the run
// lives, and removed with it. Two execute it: the watchdog, at once, and the
// next start of plimsoll, should the watchdog be dead too.
type state struct {
	path  string
	token string // in the environment of all that the run starts

	mu     sync.Mutex
	f      *os.File
	dirs   []string // scratch directories and RAM disks
	reaper *reaper
}

// reaper is the watchdog as its run sees it.
type reaper struct {
	cmd   *exec.Cmd
	pipe  io.Closer // it reads the other end: our death closes ours
	ended chan struct{}
	err   error // of its end, once ended is closed
}

// entry is one line of the file.
type entry struct {
	// "run" (first line), "group", "gone" (a group that ended), "dir" (which may be gone, too)
	Kind  string `json:"kind"`
	PID   int    `json:"pid,omitempty"`   // ours, or the group's
	Birth uint64 `json:"birth,omitempty"` // of PID, in clock ticks since boot
	Boot  string `json:"boot,omitempty"`  // boot ID: pids mean nothing after a reboot
	Token string `json:"token,omitempty"`
	Path  string `json:"path,omitempty"`
}

const (
	tokenEnv      = "PLIMSOLL_RUN"     // marks all that a run starts
	processEnv    = "PLIMSOLL_PROCESS" // marks all that one process starts
	scratchPrefix = "plimsoll-"
	stateSuffix   = ".run.jsonl"
	bornSuffix    = ".new" // after it, until the run is known to the file
)

// stateDir is where the wills of this user's runs are.
func stateDir() (string, error) {
	uid := outerUID()
	dir := filepath.Join(os.TempDir(), "plimsoll-"+strconv.Itoa(uid))
	if x := os.Getenv("XDG_RUNTIME_DIR"); x != "" && ownedByUs(x) { // sudo may have kept another's
		dir = filepath.Join(x, "plimsoll")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("testbed: state directory: %w", err)
	}
	// Others may write to the temporary directory; we kill and remove what the
	// files in here name, so the directory must be ours alone.
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !ownedByUs(dir) {
		return "", fmt.Errorf("testbed: state directory %s is not ours alone; remove it", dir)
	}
	return dir, nil
}

func ownedByUs(dir string) bool {
	var st unix.Stat_t
	return unix.Lstat(dir, &st) == nil && int(st.Uid) == os.Geteuid()
}

// outerUID is the user's ID outside the user namespace that Enter made: root
// in there must not share root's directory out here.
func outerUID() int {
	uid := os.Geteuid()
	for _, m := range idMap("/proc/self/uid_map") {
		if uid >= m.ContainerID && uid < m.ContainerID+m.Size {
			return m.HostID + uid - m.ContainerID
		}
	}
	return uid
}

func bootID() string { return readLine("/proc/sys/kernel/random/boot_id") }

func newState(self []string) (*state, error) {
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	s := &state{token: rand.Text()}
	s.path = filepath.Join(dir, strconv.Itoa(os.Getpid())+"-"+s.token[:8]+stateSuffix)
	// The watchdog first: from here on we may die at any moment.
	if s.reaper, err = startReaper(self, s.path); err != nil {
		return nil, err
	}
	if err := s.create(); err != nil {
		return nil, errors.Join(fmt.Errorf("testbed: state file: %w", err), s.reaper.end())
	}
	return s, nil
}

// create makes the file. It is locked before it has its name, so that no
// other process takes a run that is being created for a dead one.
func (s *state) create() (err error) {
	tmp := s.path + bornSuffix
	if s.f, err = os.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return err
	}
	born, _ := birth(os.Getpid())
	err = unix.Flock(int(s.f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = s.write(entry{Kind: "run", PID: os.Getpid(), Birth: born, Boot: bootID(), Token: s.token})
	}
	if err == nil {
		err = os.Rename(tmp, s.path)
	}
	if err != nil {
		return errors.Join(err, s.f.Close(), os.Remove(tmp))
	}
	return nil
}

// startReaper starts the watchdog, `plimsoll node reaper FILE`, and waits until
// it watches.
func startReaper(self []string, file string) (_ *reaper, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("testbed: start the watchdog, %s node reaper: %w", strings.Join(self, " "), err)
		}
	}()
	if os.Getenv(reaperEnv) != "" {
		return nil, errors.New("this is the watchdog itself: the program does not know the command (a test's " +
			"TestMain calls testbed.ServeNode)")
	}
	cmd := exec.Command(self[0], append(slices.Clone(self[1:]), "node", "reaper", file)...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GOMAXPROCS=1", "TMPDIR=" + os.TempDir(), reaperEnv + "=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a Ctrl-C must not reach it
	d := &reaper{cmd: cmd, ended: make(chan struct{})}
	if d.pipe, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	answer, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	_ = answer.(*os.File).SetReadDeadline(time.Now().Add(reaperTimeout))
	said := make([]byte, len(reaperReady))
	_, err = io.ReadFull(answer, said)
	ready := err == nil && string(said) == reaperReady
	if !ready {
		_ = cmd.Process.Kill()
	}
	go func() {
		d.err = cmd.Wait()
		close(d.ended)
	}()
	if !ready {
		<-d.ended
		return nil, fmt.Errorf("it did not say that it is ready (%q, %w)", said, err)
	}
	return d, nil
}

const (
	reaperEnv     = "PLIMSOLL_REAPER"
	reaperTimeout = 20 * time.Second
)

func (s *state) write(e entry) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Kind == "dir" {
		s.dirs = append(s.dirs, e.Path)
	}
	_, err = s.f.Write(append(b, '\n'))
	return err
}

func (s *state) addGroup(pid int, birth uint64) error {
	return s.write(entry{Kind: "group", PID: pid, Birth: birth})
}

func (s *state) dropGroup(pid int) error { return s.write(entry{Kind: "gone", PID: pid}) }

// addDir takes a directory that is to be removed, with what is mounted on it.
func (s *state) addDir(path string) error { return s.write(entry{Kind: "dir", Path: path}) }

// close removes the directories and the file, and lets the watchdog go.
func (s *state) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, d := range s.dirs {
		errs = append(errs, removeMount(d))
	}
	errs = append(errs, os.Remove(s.path), s.f.Close(), s.reaper.end())
	return errors.Join(errs...)
}

// end lets the watchdog go.
func (d *reaper) end() error {
	err := d.pipe.Close()
	if <-d.ended; d.err != nil {
		err = errors.Join(err, fmt.Errorf("testbed: the watchdog ended badly: %w", d.err))
	}
	return err
}

// will is a state file's content.
type will struct {
	run    entry
	groups map[int]uint64 // pid → birth
	dirs   []string
}

func readWill(b []byte) (will, error) {
	w := will{groups: map[int]uint64{}}
	for line := range bytes.Lines(b) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			break // the line that was being written when the run died
		}
		switch e.Kind {
		case "run":
			w.run = e
		case "group":
			w.groups[e.PID] = e.Birth
		case "gone":
			delete(w.groups, e.PID)
		case "dir":
			w.dirs = append(w.dirs, e.Path)
		}
	}
	if w.run.Kind == "" {
		return w, errors.New("it has no first line")
	}
	return w, nil
}

// lockWill opens and locks the file of a dead run. Both results nil: the run
// lives, or the file is gone.
func lockWill(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, err
	}
	if _, err := os.Lstat(path); err != nil { // executed by another while we waited
		_ = f.Close()
		return nil, nil
	}
	return f, nil
}
