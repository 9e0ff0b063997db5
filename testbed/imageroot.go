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
// /run are in memory and its own. AT is an empty directory, where the new root is put
// together; variables that are not set get these values.
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

// changeRoot moves this thread into a mount namespace with a root of its own: a tmpfs, into
// which the image's directories are bound.
func changeRoot(root, at, own string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare the mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("detach the mounts: %w", err)
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=64m"); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	way := strings.FieldsFunc(own, func(r rune) bool { return r == '/' })
	if err := bindAll(root, at, way, "dev", "proc", "sys", "tmp", "run"); err != nil {
		return err
	}
	for dir, mode := range map[string]fs.FileMode{"dev": 0o755, "dev/shm": 0o777 | fs.ModeSticky, "proc": 0o555,
		"tmp": 0o777 | fs.ModeSticky, "run": 0o755} {
		if err := errors.Join(os.MkdirAll(filepath.Join(at, dir), 0o755),
			os.Chmod(filepath.Join(at, dir), mode)); err != nil {
			return err
		}
	}
	kept, _ := os.ReadDir(filepath.Join(root, "run")) // what daemons look for, such as sshd; most images have none
	for _, e := range kept {
		if e.IsDir() {
			if err := os.Mkdir(filepath.Join(at, "run", e.Name()), 0o755); err != nil {
				return err
			}
		}
	}
	if err := unix.Mount("/proc", filepath.Join(at, "proc"), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind /proc: %w", err)
	}
	if err := devices(filepath.Join(at, "dev")); err != nil {
		return err
	}
	if len(way) > 0 {
		to := filepath.Join(at, own)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(own, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind %s: %w", own, err)
		}
	}
	if err := unix.Chdir(at); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	return unix.Unmount(".", unix.MNT_DETACH) // the old root, which lies over the new one
}

// bindAll binds what is in a directory of the image into one of the new root. Directories on
// the way to the process's own are made instead, since nothing can be made in the image.
func bindAll(from, to string, way []string, not ...string) error {
	var entries []os.DirEntry
	if info, err := os.Lstat(from); err == nil && info.IsDir() { // a link might lead out of the image
		if entries, err = os.ReadDir(from); err != nil {
			return err
		}
	}
	for _, e := range entries {
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case slices.Contains(not, e.Name()), len(way) > 0 && e.Name() == way[0]:
			continue
		case e.Type()&fs.ModeSymlink != 0:
			leads, err := os.Readlink(source)
			if err == nil {
				err = os.Symlink(leads, target)
			}
			if err != nil {
				return err
			}
			continue
		}
		make := func(path string) error { return os.WriteFile(path, nil, 0o644) }
		if e.IsDir() {
			make = func(path string) error { return os.Mkdir(path, 0o755) }
		}
		if err := errors.Join(make(target), bindReadOnly(source, target)); err != nil {
			return err
		}
	}
	if len(way) == 0 || slices.Contains(not, way[0]) {
		return nil
	}
	next := filepath.Join(to, way[0])
	if err := os.Mkdir(next, 0o755); err != nil || len(way) == 1 {
		return err
	}
	return bindAll(filepath.Join(from, way[0]), next, way[1:])
}

func bindReadOnly(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", from, err)
	}
	var on unix.Statfs_t
	if err := unix.Statfs(to, &on); err != nil {
		return err
	}
	// A user namespace may not take away what the mount has been given.
	kept := uintptr(on.Flags) & (unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
	if err := unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|kept,
		""); err != nil {
		return fmt.Errorf("bind %s read only: %w", from, err)
	}
	return nil
}

// devices makes a small /dev.
func devices(dev string) error {
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
