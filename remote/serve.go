package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/atomicfile"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

// Names of files in the directory of a run on a machine.
const (
	// RunDir is the run directory. A machine is kept for the engine as long as this directory
	// exists.
	RunDir       = "run"
	tmpDir       = "tmp"        // temporary files of the engine, and so the paths of deployments on all machines
	progressFile = "progress"   // events, in gob
	machinesFile = "machines"   // the current machines, in gob: some have replaced others
	turnLock     = "turn.lock"  // taken before trialLock, so that neither side starves
	trialLock    = "trial.lock" // held by a trial or by a copy of the run directory, so that they do not overlap
	overMark     = "over"       // created when the run is over
	engineLock   = "engine.lock"
	agentLock    = "agent.lock"
)

// Execute runs a plan like the engine; cfg lacks what only the program knows.
type Execute func(ctx context.Context, cfg engine.Config) (engine.Result, error)

// ServeNode implements `plimsoll node run VERB --dir DIR`, which launchers execute on machines.
func ServeNode(ctx context.Context, args []string, in io.Reader, out io.Writer, execute Execute) error {
	if len(args) == 0 {
		return errors.New("node run: which part?")
	}
	flags := flag.NewFlagSet("plimsoll node run "+args[0], flag.ContinueOnError)
	dir := flags.String("dir", "", "of the run on this machine")
	emulate := flags.Bool("emulate", false, "links between machines: the engine needs namespaces")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("node run: --dir is missing")
	}
	tmp := filepath.Join(*dir, tmpDir)
	_ = os.Mkdir(tmp, 0o700) // fails if the run is over and its directory is gone
	if err := os.Setenv("TMPDIR", tmp); err != nil {
		return err
	}
	rest := flags.Args()
	if *emulate {
		if done, err := testbed.EnterHere(); done || err != nil {
			return err
		}
	}
	switch args[0] {
	case "start": // an engine that outlives this process
		return detach(*dir, "engine.log", in, out, append([]string{"engine", "--dir", *dir}, rest...)...)
	case "engine":
		return serveEngine(ctx, *dir, in, out, execute)
	case "follow":
		return follow(ctx, *dir, out)
	case "fetch":
		defer betweenTrials(ctx, *dir)()
		return writeRun(out, filepath.Join(*dir, RunDir))
	case "machines":
		return atomicfile.Write(filepath.Join(*dir, machinesFile), func(w io.Writer) error {
			_, err := io.Copy(w, in)
			return err
		})
	case "interrupt":
		if pid := holder(filepath.Join(*dir, engineLock)); pid != 0 {
			return syscall.Kill(pid, interrupted)
		}
		return nil
	case "state":
		_, err := io.WriteString(out, stateOf(*dir))
		return err
	case "start-agent": // also outlives this process
		return detach(*dir, "agent.log", in, out, append([]string{"agent", "--dir", *dir, "--"}, rest...)...)
	case "agent":
		return serveAgent(ctx, *dir, rest, in)
	case "end":
		return end(*dir)
	default:
		return fmt.Errorf("node run %s: there is no such part", args[0])
	}
}

// copyPatience is how long a copy of the run directory waits for a trial, and a trial for a copy. After that they
// overlap, and what the copy uses counts as CPU of others.
const copyPatience = 5 * time.Minute

// betweenTrials waits until no trial runs and no copy of the run directory is made, and prevents
// both until release is called.
func betweenTrials(ctx context.Context, dir string) (release func()) {
	ctx, cancel := context.WithTimeout(ctx, copyPatience)
	defer cancel()
	turn, err := testbed.AwaitLock(ctx, filepath.Join(dir, turnLock))
	if err != nil {
		return func() {}
	}
	if release, err = testbed.AwaitLock(ctx, filepath.Join(dir, trialLock)); err != nil {
		return turn // holding turn, so that the next trial or copy waits for this one
	}
	turn()
	return release
}

// detach starts another part of `node run` in a new session, passes it our input, and prints its
// first line once it is written.
func detach(dir, log string, in io.Reader, out io.Writer, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(dir, log), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	c := exec.Command(self, append([]string{"node", "run"}, args...)...)
	c.Stdin, c.Stderr, c.SysProcAttr = in, file, &syscall.SysProcAttr{Setsid: true}
	said, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		err = errors.Join(err, c.Wait())
		text, _ := io.ReadAll(io.NewSectionReader(file, 0, 1<<20)) // the open file: an agent that ends removes dir
		return fmt.Errorf("node run %s: %w: %s", args[0], err, bytes.TrimSpace(text))
	}
	_, err = io.WriteString(out, line)
	return err
}

// lingering is how long the run directory remains on the machine to be fetched after the run is
// over.
const lingering = 24 * time.Hour

// interrupted is the signal that interrupts the engine, and may be repeated: a second SIGINT would
// kill the engine.
const interrupted = syscall.SIGUSR1

// serveEngine reads an order and, for a resumed run, its directory. It executes the order, writes
// events to a file, and waits until it is terminated.
func serveEngine(ctx context.Context, dir string, in io.Reader, out io.Writer, execute Execute) error {
	running, stop := signal.NotifyContext(ctx, interrupted)
	defer stop()
	unlock, err := lockProcess(filepath.Join(dir, engineLock))
	if err != nil {
		return err
	}
	defer unlock()
	from := bufio.NewReader(in) // gob reads only its own part from a bufio.Reader
	var o order
	if err := gob.NewDecoder(from).Decode(&o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, RunDir), 0o755); err != nil {
		return err
	}
	if o.Config.Resume {
		if err := readRun(from, filepath.Join(dir, RunDir)); err != nil {
			return fmt.Errorf("read the run directory: %w", err)
		}
	}
	cfg := o.Config
	if cfg.Plan, err = experiment.LoadPlan(o.Plan); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(dir, progressFile))
	if err != nil {
		return err
	}
	defer file.Close()
	cache := cmp.Or(os.Getenv(testbed.CacheVariable), filepath.Join(dir, "cache"))
	if err := os.Setenv(testbed.CacheVariable, cache); err != nil {
		return err
	}
	fmt.Fprintln(out, "started")
	os.Remove(filepath.Join(dir, machinesFile))
	say := &recorder{dir: dir, enc: gob.NewEncoder(file)}
	hosts := newFleet(running, o, cfg.Plan, say)
	defer hosts.close()
	var res engine.Result
	if err = hosts.stay(running); err == nil {
		cfg.Dir, cfg.Progress = filepath.Join(dir, RunDir), func(e engine.Event) { say.event(event{Event: e}) }
		cfg.Hosts, cfg.Machines, cfg.Where = hosts.host, len(o.Machines), hosts.where()
		cfg.BetweenTrials = func(ctx context.Context) func() { return betweenTrials(ctx, dir) }
		res, err = execute(running, cfg)
	}
	// A run that could not begin has removed its directory, but followers will fetch it.
	if made := os.MkdirAll(filepath.Join(dir, RunDir), 0o755); err == nil {
		err = made
	}
	say.event(ending(res, err))
	if err := os.WriteFile(filepath.Join(dir, overMark), nil, 0o600); err != nil {
		return err
	}
	if timing.Pause(ctx, lingering); ctx.Err() != nil {
		return nil
	}
	return os.RemoveAll(filepath.Join(dir, RunDir))
}

// recorder writes events to a file, for followers.
type recorder struct {
	dir string

	mu    sync.Mutex
	enc   *gob.Encoder
	begun time.Time // start of the latest trial
	at    time.Time // time of the latest frequent event that was written
}

// event writes an event. It writes frequent events at most once a second, and every 10 s in a trial
// of more than a minute: a trial may take a month, and followers read everything.
func (r *recorder) event(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now, every := time.Now(), time.Second
	if e.Kind == engine.EventBegin {
		r.begun = now
	}
	if now.Sub(r.begun) > time.Minute {
		every = 10 * time.Second
	}
	if e.often() {
		if now.Sub(r.at) < every {
			return
		}
		e.At, r.at = now, now
	}
	if err := r.enc.Encode(e); err != nil {
		fmt.Fprintln(os.Stderr, err) // the run continues: it has its own record
	}
}

// oldAfter is the age from which the progress of a trial or a phase is no longer sent.
const oldAfter = 5 * time.Second

// follow writes the events from the first one, until the run is over or the engine has died. It
// omits old frequent events.
func follow(ctx context.Context, dir string, out io.Writer) error {
	say := gob.NewEncoder(out)
	file, err := os.Open(filepath.Join(dir, progressFile))
	if err != nil { // it has just started: the follower tries again
		return err
	}
	defer file.Close()
	died := func() bool { return holder(filepath.Join(dir, engineLock)) == 0 }
	for events := gob.NewDecoder(testbed.Follow(ctx, file, died)); ; {
		var e event
		if err := events.Decode(&e); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			text, _ := os.ReadFile(filepath.Join(dir, "engine.log"))
			said := strings.TrimSpace(string(text[max(0, len(text)-2000):]))
			e = event{Event: engine.Event{Kind: kindDied, Text: said}}
		}
		if e.often() && time.Since(e.At) > oldAfter {
			continue
		}
		if err := say.Encode(e); err != nil || e.Kind == kindOver || e.Kind == kindDied {
			return err
		}
	}
}

// serveAgent runs an agent. At its end it removes the run's directory, unless an engine on the
// machine has or had a run there.
func serveAgent(ctx context.Context, dir string, args []string, in io.Reader) error {
	unlock, err := lockProcess(filepath.Join(dir, agentLock))
	if err != nil {
		return err
	}
	defer unlock()
	err = agent.Serve(ctx, append([]string{"--dir", dir}, args...), in)
	if _, e := os.Stat(filepath.Join(dir, RunDir)); errors.Is(e, os.ErrNotExist) {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// Time limits for processes to end: the engine cleans up first.
const (
	endPatience  = 90 * time.Second
	killPatience = 10 * time.Second
)

// end ends the engine and the agent of a run, and removes its directory.
func end(dir string) error {
	for _, lock := range []string{engineLock, agentLock} {
		path := filepath.Join(dir, lock)
		for _, by := range []struct {
			signal syscall.Signal
			within time.Duration
		}{{syscall.SIGTERM, endPatience}, {syscall.SIGKILL, killPatience}} {
			pid := holder(path)
			if pid == 0 {
				break
			}
			_ = syscall.Kill(pid, by.signal)
			for until := time.Now().Add(by.within); holder(path) == pid && time.Now().Before(until); {
				time.Sleep(20 * time.Millisecond)
			}
		}
		if pid := holder(path); pid != 0 {
			return fmt.Errorf("process %d does not end", pid)
		}
	}
	return os.RemoveAll(dir)
}

// States of an engine.
const (
	stateAlive = "alive"
	stateNever = "never" // it never began, or its record is gone
	stateOver  = kindOver
	stateDied  = kindDied
)

func stateOf(dir string) string {
	lives := holder(filepath.Join(dir, engineLock)) != 0 // read first, because it may end meanwhile
	switch {
	case !exists(dir, RunDir):
		return stateNever
	case exists(dir, overMark):
		return stateOver
	case lives:
		return stateAlive
	case !exists(dir, progressFile):
		return stateNever
	}
	return stateDied
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// lockProcess locks a file for the lifetime of the process; see holder.
func lockProcess(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is locked by process %d: %w", path, holder(path), err)
	}
	return func() { f.Close() }, nil
}

// holder returns the ID of the process that holds a lock by lockProcess, or 0.
func holder(path string) int {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	l := unix.Flock_t{Type: unix.F_WRLCK}
	if unix.FcntlFlock(f.Fd(), unix.F_GETLK, &l) != nil || l.Type == unix.F_UNLCK {
		return 0
	}
	return int(l.Pid)
}
