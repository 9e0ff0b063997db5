package testbed

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/internal/words"
)

// process implements Process on this machine.
type process struct {
	host    *host
	cmd     Command
	label   string
	pid     int
	started time.Time
	birth   uint64 // the kernel's start time of pid, in clock ticks since boot
	log     string
	done    chan struct{}

	err  error           // valid when done is closed, like used
	used *syscall.Rusage // of the whole life

	stopping atomic.Bool
	stopOnce sync.Once
	stopErr  error

	usage usageMeter

	mark   string // environment variable of the process, unique and inherited by its descendants
	seenMu sync.Mutex
	seen   map[int]uint64 // the family at the last look: pid → birth
}

// Ended reports whether a process has ended or can no longer be reached.
func Ended(p Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// TrackProcesses returns a function that lists the processes of hosts that are running now, and all that
// are started later, ended ones included.
func TrackProcesses(hosts ...Host) func() []Process {
	over := map[Process]bool{}
	for _, h := range hosts {
		for _, p := range h.Processes() {
			over[p] = Ended(p)
		}
	}
	return func() (all []Process) {
		for _, h := range hosts {
			all = append(all, h.Processes()...)
		}
		return slices.DeleteFunc(all, func(p Process) bool { return over[p] })
	}
}

const (
	defaultReadyTimeout = 30 * time.Second
	defaultStopTime     = 10 * time.Second
	killGrace           = 5 * time.Second // how long the kernel may take to remove what was killed
)

// Start implements Host.
func (h *host) Start(ctx context.Context, c Command) (Process, error) {
	p, err := h.spawn(ctx, c)
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("testbed: start %s: %w", c.Name, err)
	}
	if err := AwaitReady(ctx, p, c); err != nil {
		return nil, fmt.Errorf("testbed: start %s: %w", c.Name, err)
	}
	return p, nil
}

func (h *host) spawn(ctx context.Context, c Command) (*process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.Name == "" || len(c.Args) == 0 {
		return nil, errors.New("a command needs a name and a program")
	}
	if err := h.stopLeftover(c.Name); err != nil {
		return nil, err
	}
	if err := h.t.beginStart(); err != nil {
		return nil, err
	}
	defer h.t.starting.Done()
	label := h.t.Label(h.name, c.Name)
	p := &process{host: h, cmd: c, label: label, done: make(chan struct{})}
	p.log = filepath.Join(h.t.opt.Dir, "logs", sanitize(label)+".log")
	logFile, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log file: %w", err)
	}
	defer logFile.Close()

	if c.Dir != "" {
		if err := os.MkdirAll(c.Dir, 0o755); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir = c.Dir
	p.mark = processEnv + "=" + label + "#" + rand.Text()
	dir := cmp.Or(c.Dir, h.t.opt.Dir)
	// The environment is minimal, so that a run does not depend on the user's.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "LANG=C"}
	cmd.Env = slices.Concat(cmd.Env, c.Env, []string{tokenEnv + "=" + h.t.runDir.token, p.mark})
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = logFile, logFile, c.files
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	carry, err := p.pipes(cmd)
	if err != nil {
		return nil, err
	}
	err = h.keeper.do(func() error {
		if err := cmd.Start(); err != nil {
			return err
		}
		p.pid, p.started = cmd.Process.Pid, time.Now()
		p.birth, _ = birth(p.pid)
		return os.WriteFile(p.groupFile(), nil, 0o600)
	})
	carry()
	if err != nil {
		close(p.done)
		if cmd.Process != nil { // it runs unrecorded: after a crash no later run would find it
			_ = killGroup(p.pid, syscall.SIGKILL)
			_ = cmd.Wait()
		}
		if errors.Is(err, exec.ErrNotFound) {
			return nil, fmt.Errorf("%w; is it installed?", err)
		}
		return nil, err
	}
	h.mu.Lock()
	h.procs, h.started = append(h.procs, p), append(h.started, p)
	h.mu.Unlock()
	go p.wait(cmd)
	return p, nil
}

// pipes sets up the input and output of the process: pipes, or our file as the input. After
// the start, carry copies through the pipes.
func (p *process) pipes(cmd *exec.Cmd) (carry func(), err error) {
	var feed io.WriteCloser // closed when it has ended
	from, to := p.cmd.Stdin, p.cmd.Stdout
	if input, isFile := from.(*os.File); isFile {
		cmd.Stdin = input
	} else if feed, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	var result, output *os.File
	if to != nil {
		if result, output, err = os.Pipe(); err != nil {
			return nil, err
		}
		cmd.Stdout = output
	}
	return func() {
		if feed != nil && from != nil {
			go func() {
				_, _ = io.Copy(feed, from)
				feed.Close()
			}()
		}
		if result != nil {
			output.Close()
			go func() {
				_, _ = io.Copy(to, result)
				result.Close()
				to.Close()
			}()
		}
	}, nil
}

// Close closes the command's input and output.
func (c Command) Close() {
	if c.Stdin != nil {
		c.Stdin.Close()
	}
	if c.Stdout != nil {
		c.Stdout.Close()
	}
}

// stopLeftover stops what a process of that name has left behind, if it ended by itself.
func (h *host) stopLeftover(name string) error {
	for _, p := range processes(h) {
		if p.cmd.Name != name {
			continue
		}
		if Ended(p) {
			return p.Stop(context.Background())
		}
		return fmt.Errorf("it runs already on host %s (pid %d)", h.name, p.pid)
	}
	return nil
}

// Label returns the name of a process in samples and logs: that of its command, prefixed with
// the host's when another host has a process of the same name.
func (t *Testbed) Label(host, name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	label := name
	if owner, ok := t.labels[label]; ok && owner != host {
		label = host + "/" + name
	}
	t.labels[label] = host
	return label
}

// beginStart delays Close until the caller calls t.starting.Done.
func (t *Testbed) beginStart() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errHostClosed
	}
	t.starting.Add(1)
	return nil
}

func (p *process) wait(cmd *exec.Cmd) {
	err := cmd.Wait()
	if end := cmd.ProcessState; end != nil {
		p.used, _ = end.SysUsage().(*syscall.Rusage)
	}
	if err != nil && !p.stopping.Load() {
		p.err = fmt.Errorf("testbed: %s ended by itself after %s: %w%s", p.label, words.Duration(time.Since(p.started)),
			err, logHint(p.log)) // "exit status 1", "signal: killed (core dumped)"
	}
	close(p.done)
	if p.cmd.Stdin != nil {
		p.cmd.Stdin.Close()
	}
}

// AwaitReady waits until a newly started process is ready, and stops it at its deadline.
func AwaitReady(ctx context.Context, p Process, c Command) error {
	if c.Ready == nil {
		return nil
	}
	err := pollReady(ctx, p, c)
	if err == nil {
		return nil
	}
	now, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cancel()
	stopped := p.Stop(now)
	if p.Err() == nil { // else that error has the log
		err = fmt.Errorf("%w%s", err, logHint(p.LogPath()))
	}
	return errors.Join(err, stopped)
}

// probeTimeout limits one call of Ready.
const probeTimeout = 10 * time.Second

// pollReady calls the command's Ready until it succeeds.
func pollReady(ctx context.Context, p Process, c Command) error {
	limit := cmp.Or(c.ReadyTimeout, defaultReadyTimeout)
	late := fmt.Errorf("not ready after %s", words.Duration(limit))
	waiting, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	go func() { // the end of the process cancels a probe
		select {
		case <-p.Done():
			cancel()
		case <-waiting.Done():
		}
	}()
	var last error
	for pause := 5 * time.Millisecond; !Ended(p); pause = min(pause*3/2, 250*time.Millisecond) {
		probing, end := context.WithTimeout(waiting, probeTimeout)
		err := c.Ready(probing)
		end()
		if err == nil && !Ended(p) {
			return nil
		}
		if waiting.Err() == nil || last == nil { // a probe cancelled by the deadline says less than the one before
			last = err
		}
		if !timing.Pause(waiting, pause) && !Ended(p) {
			return fmt.Errorf("%w (last: %w)", context.Cause(waiting), last)
		}
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("ended before it was ready: %w", err)
	}
	return errors.New("ended before it was ready, with exit status 0")
}

// logHint names the file of a log and quotes its last lines, at most 4 KiB.
func logHint(log string) string {
	const size, lines = 4 << 10, 12
	hint := "; see " + log
	f, err := os.Open(log)
	if err != nil {
		return hint
	}
	defer f.Close()
	_, _ = f.Seek(-size, io.SeekEnd) // if it is shorter, this fails and changes nothing
	b, _ := io.ReadAll(io.LimitReader(f, size))
	tail := strings.TrimSpace(strings.ToValidUTF8(string(b), "?"))
	if tail == "" {
		return hint
	}
	all := strings.Split(tail, "\n")
	return hint + "; it ends:\n    " + strings.Join(all[max(0, len(all)-lines):], "\n    ")
}

// sanitize makes a file name of a label: "nginx/server" → "nginx-server".
func sanitize(s string) string { return noFileName.ReplaceAllString(s, "-") }

var noFileName = regexp.MustCompile(`[^a-zA-Z0-9._-]`)

// Name implements Process.
func (p *process) Name() string { return p.label }

// ID implements Process.
func (p *process) ID() ProcessID { return ProcessID{p.host.name, p.pid, p.birth} }

// Host implements Process.
func (p *process) Host() Host { return p.host }

// LogPath implements Process.
func (p *process) LogPath() string { return p.log }

// Done implements Process.
func (p *process) Done() <-chan struct{} { return p.done }

// Err implements Process.
func (p *process) Err() error {
	if Ended(p) {
		return p.err
	}
	return nil
}

// Signal implements Process.
func (p *process) Signal(s syscall.Signal) error {
	if Ended(p) {
		return fmt.Errorf("testbed: %s to %s: it has ended", s, p.label)
	}
	if err := killGroup(p.pid, s); err != nil {
		return fmt.Errorf("testbed: %s to %s: %w", s, p.label, err)
	}
	return nil
}

// Stop implements Process.
func (p *process) Stop(ctx context.Context) error {
	p.stopOnce.Do(func() { p.stopErr = p.escalate(ctx, cmp.Or(p.cmd.StopTime, defaultStopTime)) })
	return p.stopErr
}

func (p *process) escalate(ctx context.Context, limit time.Duration) error {
	p.stopping.Store(true)
	// The members must be known before the leader ends: an orphaned child with its own
	// session and environment cannot be recognised. And the kernel reports the reads and writes
	// of the family only while they live.
	p.host.t.polling.Lock()
	p.sample(scan())
	p.host.t.polling.Unlock()
	began := time.Now()
	for _, s := range []struct {
		after  time.Duration
		signal syscall.Signal
	}{{0, syscall.SIGTERM}, {limit * 3 / 4, syscall.SIGQUIT}, {limit, syscall.SIGKILL}} {
		if p.ended(ctx, time.Until(began.Add(s.after))) || ctx.Err() != nil {
			break
		}
		if err := killGroup(p.pid, s.signal); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("testbed: stop %s: %s: %w", p.label, s.signal, err)
		}
	}
	// Descendants do not outlive the leader.
	defer p.forget()
	left := killAll(p.members)
	if len(left) > 0 || !p.ended(context.Background(), killGrace) {
		return fmt.Errorf("testbed: stop %s: pids %v do not end although killed %s ago; are they stuck in the "+
			"kernel (state D)?", p.label, left, killGrace)
	}
	return nil
}

// killAll kills processes until find returns none. It returns which did not end.
func killAll(find func() []int) (left []int) {
	deadline := time.Now().Add(killGrace)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		left = find()
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		time.Sleep(pause)
	}
}

// ended waits up to d for the leader to end.
func (p *process) ended(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-p.done:
	case <-ctx.Done():
	}
	return Ended(p)
}

// forget removes the process from the lists of processes to observe and to kill. It keeps
// the final sample for the next poll: otherwise the usage since the last poll would be lost,
// and a process that lived between two polls would never be seen.
func (p *process) forget() {
	h := p.host
	h.t.polling.Lock()
	defer h.t.polling.Unlock()
	h.t.lastSamples = append(h.t.lastSamples, p.sample(nil))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.procs = slices.DeleteFunc(h.procs, func(q *process) bool { return q == p })
	_ = os.Remove(p.groupFile())
}

// killGroup signals the whole process group.
func killGroup(pgid int, sig syscall.Signal) error { return unix.Kill(-pgid, sig) }
