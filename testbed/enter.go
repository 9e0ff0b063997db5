package testbed

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// EnteredVariable is set in the environment of the process that Enter started.
const EnteredVariable = "PLIMSOLL_ENTERED"

// Enter gives the command network namespaces if it may not create any itself: as an
// ordinary user, or as root without the capabilities (as in most containers). A command
// that creates a testbed calls it first. Where the kernel allows user namespaces, it runs
// the same command again as root of new user, network and mount namespaces, forwards
// signals, and waits.
//
// done means that the command has run there and exited with code. Otherwise the caller
// continues: it may create namespaces, or it is the command in the namespaces, or there
// are none (err says why; New then creates plain hosts and records why).
func Enter() (code int, done bool, err error) { return enterAs(namespaced()) }

// EnterHere is Enter without a network namespace: for a command that reaches other machines
// through its current network and creates namespaces for hosts. A non-zero exit there is an error.
func EnterHere() (done bool, err error) {
	attr := namespaced()
	attr.Cloneflags &^= unix.CLONE_NEWNET
	code, done, err := enterAs(attr)
	if code != 0 && err == nil {
		err = fmt.Errorf("testbed: the command ended in its namespaces with status %d", code)
	}
	return done, err
}

func enterAs(attr *syscall.SysProcAttr) (code int, done bool, err error) {
	if mayMakeNamespaces() || os.Getenv(EnteredVariable) != "" {
		return 0, false, nil
	}
	if err := tryUserNamespace(); err != nil {
		return 0, false, fmt.Errorf("testbed: no user namespaces here: %w; %s", err, userNamespaceHint())
	}
	if err := os.Setenv(EnteredVariable, "1"); err != nil {
		return 0, false, err
	}
	// The terminal sends Ctrl-C to the command too: a second signal would mean "stop at once".
	code, err = again(attr, func(s os.Signal) bool {
		return s != syscall.SIGINT && s != syscall.SIGQUIT || !foreground()
	})
	return code, true, err
}

// again runs this command once more, in namespaces, and forwards the signals that pass accepts. It returns the
// exit status as a shell does. The command dies with us.
func again(attr *syscall.SysProcAttr, pass func(os.Signal) bool) (status int, err error) {
	runtime.LockOSThread() // the parent-death signal comes when this thread ends
	defer runtime.UnlockOSThread()
	exe, err := os.Executable()
	if err != nil {
		return 1, fmt.Errorf("testbed: find our own executable: %w", err)
	}
	cmd := exec.Command(exe, os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = attr
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	passed := []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2}
	signals := make(chan os.Signal, 8)
	signal.Reset(passed...) // other parts of this process no longer receive them
	signal.Notify(signals, passed...)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("testbed: enter namespaces: %w", err)
	}
	go func() {
		for s := range signals {
			if pass(s) {
				_ = cmd.Process.Signal(s)
			}
		}
	}()
	var exit *exec.ExitError
	if err = cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return 1, fmt.Errorf("testbed: wait for the command in namespaces: %w", err)
	}
	if w, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// mayMakeNamespaces reports whether this process can create network namespaces and, in
// them, mounts, links and packet sockets (for the emulator).
func mayMakeNamespaces() bool {
	return os.Geteuid() == 0 && hasCapabilities(unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_RAW)
}

// hasCapabilities reports whether all of these capabilities are effective.
func hasCapabilities(all ...int) bool {
	var sets [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &sets[0]); err != nil {
		return false
	}
	return !slices.ContainsFunc(all, func(c int) bool { return sets[c/32].Effective&(1<<(c%32)) == 0 })
}

// namespaced starts a process as root of its own namespaces. An ordinary user is the only
// user there; root keeps the other users if it may map them, so that daemons can switch to
// them.
func namespaced() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if os.Geteuid() == 0 && hasCapabilities(unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETFCAP) {
		users, groups := ownIDs("/proc/self/uid_map"), ownIDs("/proc/self/gid_map")
		if users != nil && groups != nil {
			attr.UidMappings, attr.GidMappings, attr.GidMappingsEnableSetgroups = users, groups, true
		}
	}
	return attr
}

// ownIDs maps every ID that this user namespace has to itself. The file maps them to IDs
// outside; see user_namespaces(7).
func ownIDs(file string) (ids []syscall.SysProcIDMap) {
	b, _ := os.ReadFile(file)
	for line := range strings.Lines(string(b)) {
		var id, outside, size int
		if _, err := fmt.Sscan(line, &id, &outside, &size); err != nil {
			return nil
		}
		ids = append(ids, syscall.SysProcIDMap{ContainerID: id, HostID: id, Size: size})
	}
	return ids
}

// tryUserNamespace checks that a process in namespaces can also create more of them: some
// distributions allow the first but remove the capabilities (AppArmor's
// unprivileged_userns profile).
func tryUserNamespace() error {
	unshare, err := exec.LookPath("true")
	if err != nil {
		return nil // unknown; starting the command will show it
	}
	cmd := exec.Command(unshare)
	cmd.SysProcAttr = namespaced()
	cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN} // refused where the capability is
	return cmd.Run()
}

func userNamespaceHint() string {
	for _, s := range []struct{ key, bad, good string }{
		{"kernel.unprivileged_userns_clone", "0", "1"},
		{"kernel.apparmor_restrict_unprivileged_userns", "1", "0"},
		{"user.max_user_namespaces", "0", "10000"},
	} {
		if readSysctl(s.key) == s.bad {
			return "sysctl " + s.key + "=" + s.good + " allows them"
		}
	}
	if os.Geteuid() == 0 {
		return "root lacks capabilities here: start the container with --cap-add SYS_ADMIN --cap-add NET_ADMIN " +
			"--cap-add NET_RAW, or use plain loopback hosts"
	}
	return "run as root, or use plain loopback hosts"
}

// foreground reports whether our process group is in the terminal's foreground.
func foreground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	pgrp, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && pgrp == unix.Getpgrp()
}
