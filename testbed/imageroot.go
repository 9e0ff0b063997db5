package testbed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ServeImage is `plimsoll node image ROOT AT NAME=VALUE… -- PROGRAM ARG…`: it becomes the
// program, in a mount namespace whose root is the files in ROOT, read only. The directory
// that the process was started for is there under its own path and can be written; /tmp and
// /run are in memory and its own. AT is an empty directory, where the new root is
// mounted; variables that are not set get these values.
func ServeImage(args []string) error {
	split := slices.Index(args, "--")
	if split < 2 || len(args) < split+2 {
		return errors.New("testbed: image: want ROOT AT NAME=VALUE… -- PROGRAM ARG…")
	}
	root, at, env, command := args[0], args[1], args[2:split], args[split+1:]
	if !hasCapabilities(unix.CAP_SYS_ADMIN) {
		return asUserOfNamespace()
	}
	runtime.LockOSThread() // the namespace is the thread's, and the program takes over from it
	own := ownDir()
	if err := changeRoot(root, at, own); err != nil {
		return fmt.Errorf("testbed: image: %w", err)
	}
	if err := unix.Chdir(own); err != nil {
		return fmt.Errorf("testbed: image: change to %s: %w", own, err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("testbed: image: drop capabilities: %w", err)
	}
	err := unix.Exec(command[0], command, imageEnvironment(env, os.Environ()))
	return fmt.Errorf("testbed: image: start %s: %w", command[0], err)
}

// ownDir is the directory of a process that a testbed started, which is its home; of
// another, which asks a program for its version or so, it is the root.
func ownDir() string {
	if home := os.Getenv("HOME"); os.Getenv(processEnv) != "" && filepath.IsAbs(home) {
		return filepath.Clean(home)
	}
	return "/"
}

// ImagePath is where programs of an image are when it does not say it, as of Docker.
const ImagePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// imageEnvironment is that of the image with ours over it, but for PATH, which means
// nothing in there.
func imageEnvironment(image, ours []string) []string {
	all := slices.Clone(image)
	if !slices.ContainsFunc(all, func(e string) bool { return strings.HasPrefix(e, "PATH=") }) {
		all = append(all, "PATH="+ImagePath)
	}
	for _, e := range ours {
		key, _, _ := strings.Cut(e, "=")
		if key == "PATH" {
			continue
		}
		all = append(slices.DeleteFunc(all, func(old string) bool { return strings.HasPrefix(old, key+"=") }), e)
	}
	return all
}

// asUserOfNamespace runs this command again in a user namespace in which it may mount, as
// the same user, and ends as it ends.
func asUserOfNamespace() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, err := onceMore(&syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	})
	if err != nil {
		return err
	}
	// Signals go to the whole group, so the command has them, too: we wait for its end.
	signal.Notify(make(chan os.Signal, 1), unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1,
		unix.SIGUSR2)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("testbed: image: no user namespaces here: %w; %s", err, userNamespaceHint())
	}
	code, err := statusOf(cmd)
	if err == nil {
		os.Exit(code)
	}
	return err
}

// changeRoot moves this thread into a mount namespace whose root is the image, read only but
// for the process's own directory and what is in memory.
func changeRoot(image, at, own string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare the mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("detach the mounts: %w", err)
	}
	if err := unix.Mount(image, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind the image: %w", err)
	}
	root, err := os.OpenRoot(at) // which follows no link that leads out of the image
	if err != nil {
		return err
	}
	defer root.Close()
	const memory = unix.MS_NOSUID | unix.MS_NODEV
	if err := errors.Join(
		mountIn(root, "tmp", "tmpfs", "tmpfs", memory, "mode=1777,size=64m"),
		mountIn(root, "run", "tmpfs", "tmpfs", memory, "mode=755,size=64m"),
		mountIn(root, "dev", "tmpfs", "tmpfs", memory, "mode=755,size=64m"),
		mountIn(root, "proc", "/proc", "", unix.MS_BIND|unix.MS_REC, ""),
	); err != nil {
		return err
	}
	kept, _ := os.ReadDir(filepath.Join(image, "run")) // what daemons look for, such as sshd; most images have none
	for _, e := range kept {
		if e.IsDir() {
			if err := root.Mkdir(filepath.Join("run", e.Name()), 0o755); err != nil {
				return err
			}
		}
	}
	if err := devices(filepath.Join(at, "dev")); err != nil {
		return err
	}
	if own != "/" {
		if err := mountIn(root, strings.TrimPrefix(own, "/"), own, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return err
		}
	}
	if err := makeReadOnly(at); err != nil {
		return err
	}
	if err := unix.Chdir(at); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	return unix.Unmount(".", unix.MNT_DETACH) // the old root, which lies over the new one
}

// mountIn mounts something on a directory of the image, which is made when it is not there.
func mountIn(root *os.Root, dir, from, kind string, flags uintptr, options string) error {
	err := root.MkdirAll(dir, 0o755)
	var f *os.File
	if err == nil {
		f, err = root.Open(dir)
	}
	if err == nil {
		defer f.Close()
		err = unix.Mount(from, fmt.Sprintf("/proc/thread-self/fd/%d", f.Fd()), kind, flags, options)
	}
	if err != nil {
		return fmt.Errorf("mount %s on /%s: %w", from, dir, err)
	}
	return nil
}

// makeReadOnly changes one mount; those below it stay as they are.
func makeReadOnly(at string) error {
	var on unix.Statfs_t
	if err := unix.Statfs(at, &on); err != nil {
		return err
	}
	// A user namespace may not take away what the mount has been given.
	kept := uintptr(on.Flags) & (unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
	flags := unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | kept
	if err := unix.Mount("", at, "", flags, ""); err != nil {
		return fmt.Errorf("make the image read only: %w", err)
	}
	return nil
}

// devices makes a small /dev.
func devices(dev string) error {
	shm := filepath.Join(dev, "shm")
	if err := errors.Join(os.Mkdir(shm, 0o755), os.Chmod(shm, 0o777|fs.ModeSticky)); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		from, to := filepath.Join("/dev", name), filepath.Join(dev, name)
		if err := os.WriteFile(to, nil, 0o666); err != nil {
			return err
		}
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", from, err)
		}
	}
	var errs []error
	for name, to := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		errs = append(errs, os.Symlink("/proc/self/fd"+to, filepath.Join(dev, name)))
	}
	return errors.Join(errs...)
}
