package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// ServeNode runs the subcommands of plimsoll that a testbed starts: `node
// reaper`, `node link` and `node image`. args are those of the command; handled is false when
// they name something else. A test binary that makes testbeds calls it in
// TestMain, since it is what the testbed takes for plimsoll.
func ServeNode(ctx context.Context, args []string) (handled bool, err error) {
	if len(args) < 2 || args[0] != "node" {
		return false, nil
	}
	switch args[1] {
	case "reaper":
		return true, ServeReaper(ctx, args[2:], os.Stdin, os.Stdout)
	case "link":
		return true, link.Serve(ctx, args[2:])
	case "image":
		return true, ServeImage(args[2:])
	}
	return false, nil
}

// ServeReaper is `plimsoll node reaper FILE`, the watchdog of a run: it waits
// until its input closes, which is when plimsoll has died or ended, and then
// removes what the run's state file still names. It says on its output when it
// is ready.
func ServeReaper(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 1 {
		return errors.New("testbed: reaper: want the state file as the only argument")
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	if _, err := io.WriteString(stdout, reaperReady); err != nil {
		return fmt.Errorf("testbed: reaper: %w", err)
	}
	if _, err := io.Copy(io.Discard, stdin); err != nil {
		return fmt.Errorf("testbed: reaper: %w", err)
	}
	_ = os.Remove(args[0] + bornSuffix) // of a run that died being born
	// The kernel closes the dying run's descriptors one after the other: wait
	// for its lock, not just for its pipe.
	f, err := lockWill(args[0], unix.LOCK_EX)
	if f == nil {
		return err
	}
	defer f.Close()
	_, err = execute(ctx, f, args[0])
	return err
}

const reaperReady = "ready\n"

// CleanDead removes what dead runs of this user left behind: process groups,
// RAM disks and scratch directories. It says what it removed. Runs that live are not
// touched.
func CleanDead(ctx context.Context) ([]string, error) {
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"+stateSuffix+"*"))
	if err != nil {
		return nil, err
	}
	var removed []string
	var errs []error
	for _, path := range files {
		if info, err := os.Stat(path); err != nil || strings.HasSuffix(path, bornSuffix) &&
			time.Since(info.ModTime()) < time.Minute {
			continue // gone, or about to be locked
		}
		f, err := lockWill(path, unix.LOCK_EX|unix.LOCK_NB)
		if err != nil {
			errs = append(errs, err)
		}
		if f == nil {
			continue
		}
		r, err := execute(ctx, f, path)
		removed = append(removed, r...)
		errs = append(errs, err, f.Close())
	}
	return removed, errors.Join(errs...)
}

// execute does what a dead run's file asks for and removes it.
func execute(ctx context.Context, f *os.File, path string) ([]string, error) {
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	w, err := readWill(b)
	if err != nil { // nothing was started before the first line was written
		return nil, os.Remove(path)
	}
	var removed []string
	var errs []error
	if w.run.Boot == bootID() {
		killed, err := w.kill(ctx)
		removed, errs = append(removed, killed...), append(errs, err)
	}
	for _, d := range w.dirs {
		if !strings.HasPrefix(filepath.Base(d), scratchPrefix) {
			continue // not made by Scratch or RAMDisk
		}
		if _, err := os.Lstat(d); err == nil {
			errs = append(errs, removeMount(d))
			removed = append(removed, "directory "+d)
		}
	}
	if err := errors.Join(errs...); err != nil {
		// the file stays for the next attempt
		return removed, fmt.Errorf("testbed: remove what run %d left: %w", w.run.PID, err)
	}
	return removed, os.Remove(path)
}

// kill ends what the run started, until nothing of it is seen any more.
func (w will) kill(ctx context.Context) ([]string, error) {
	var removed []string
	deadline := time.Now().Add(killGrace)
	for {
		left := w.survivors(scan())
		for _, s := range left {
			if err := unix.Kill(s.pid, unix.SIGKILL); err == nil {
				line := fmt.Sprintf("process %d (%s)", s.pid, s.comm)
				if !slices.Contains(removed, line) {
					removed = append(removed, line)
				}
			}
		}
		switch {
		case len(left) == 0:
			return removed, nil
		case time.Now().After(deadline):
			return removed, fmt.Errorf("%d processes do not end although killed", len(left))
		}
		select {
		case <-ctx.Done():
			return removed, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// survivors are the live processes that are certainly the run's: in the session
// of a leader it recorded and not older than that leader, or carrying the
// run's token. A pid alone proves nothing, pids are used again.
func (w will) survivors(all map[int]stat) []stat {
	var out []stat
	for pid, s := range all {
		if s.dead() || pid == os.Getpid() {
			continue
		}
		born, ours := w.groups[s.session]
		if leader, alive := all[s.session]; ours && alive && leader.birth != born {
			ours = false // another session by now
		}
		if ours && s.birth >= born || w.run.Token != "" && carries(pid, tokenEnv+"="+w.run.Token) {
			out = append(out, s)
		}
	}
	return out
}
