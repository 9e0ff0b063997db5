package testbed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ServeImage is `plimsoll node image ROOT AT NAME=VALUE… -- PROGRAM ARG…`: it executes the
// program in a mount namespace with the read-only files of ROOT as its root. The working
// directory of the process keeps its path and is writable; /tmp and /run are private and in
// memory. AT is an empty directory where the new root is assembled. NAME=VALUE sets
// variables that are not set yet.
func ServeImage(args []string) error {
	split := slices.Index(args, "--")
	if split < 2 || len(args) < split+2 {
		return errors.New("testbed: image: want ROOT AT NAME=VALUE… -- PROGRAM ARG…")
	}
	root, at, env, command := args[0], args[1], args[2:split], args[split+1:]
	if !hasCapabilities(unix.CAP_SYS_ADMIN) {
		return asUserOfNamespace()
	}
	runtime.LockOSThread() // the namespace belongs to the thread that executes the program
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

// ownDir is the home directory of a process that a testbed started. Other calls, such as
// those that ask for a program's version, have no directory: it is the root.
func ownDir() string {
	if home := os.Getenv("HOME"); os.Getenv(processEnv) != "" && filepath.IsAbs(home) {
		return filepath.Clean(home)
	}
	return "/"
}

// ImagePath is the PATH of images that do not set one; the same as Docker's.
const ImagePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// imageEnvironment is the environment of the image, overridden by ours except for PATH,
// which is meaningless in the image.
func imageEnvironment(image, ours []string) (all []string) {
	values := map[string]string{"PATH": ImagePath}
	for i, e := range slices.Concat(image, ours) {
		if name, value, _ := strings.Cut(e, "="); i < len(image) || name != "PATH" {
			values[name] = value
		}
	}
	for name, value := range values {
		all = append(all, name+"="+value)
	}
	return all
}

// asUserOfNamespace runs this command again as the same user in a user namespace where it
// may mount, and exits with its status.
func asUserOfNamespace() error {
	code, err := again(&syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}, func(os.Signal) bool { return false }) // signals reach the whole group, and so the command
	if err == nil {
		os.Exit(code)
	}
	return fmt.Errorf("testbed: image: no user namespaces here: %w; %s", err, userNamespaceHint())
}

// changeRoot moves this thread into a mount namespace with a new root: an overlay of the image and of what it
// needs from this machine. Only /tmp, /run, /dev/shm and the directory of the process are writable.
func changeRoot(root, at, own string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare the mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("detach the mounts: %w", err)
	}
	if err := mountMemory(at, "755"); err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(at, name) }
	for _, dir := range []string{"dev/shm", "proc", "tmp", "run", own} {
		if err := os.MkdirAll(in(dir), 0o755); err != nil {
			return err
		}
	}
	devices := []string{"null", "zero", "full", "random", "urandom", "tty"}
	var errs []error
	for _, name := range devices {
		errs = append(errs, os.WriteFile(in("dev/"+name), nil, 0o666))
	}
	for name, to := range map[string]string{"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"} {
		errs = append(errs, os.Symlink("/proc/self/fd"+to, in("dev/"+name)))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	escape := strings.NewReplacer(`\`, `\\`, ":", `\:`, ",", `\,`).Replace
	if err := unix.Mount("overlay", at, "overlay", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV,
		"lowerdir="+escape(at)+":"+escape(root)); err != nil {
		return fmt.Errorf("mount an overlay of %s (which an ordinary user may from Linux 5.11 on): %w", root, err)
	}
	errs = []error{mountMemory(in("dev/shm"), "1777"), mountMemory(in("tmp"), "1777"), mountMemory(in("run"), "755")}
	kept, _ := os.ReadDir(filepath.Join(root, "run")) // some daemons, such as sshd, need theirs; most images have none
	for _, e := range kept {
		if e.IsDir() {
			errs = append(errs, os.Mkdir(in("run/"+e.Name()), 0o755))
		}
	}
	for _, name := range devices {
		errs = append(errs, bind("/dev/"+name, in("dev/"+name)))
	}
	errs = append(errs, bind("/proc", in("proc")))
	if own != "/" {
		errs = append(errs, os.MkdirAll(in(own), 0o755), bind(own, in(own))) // it may be in /tmp or /run
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := unix.Chdir(at); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	return unix.Unmount(".", unix.MNT_DETACH) // the old root, which is on top of the new one
}

func mountMemory(dir, mode string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64m,mode="+mode); err != nil {
		return fmt.Errorf("mount a tmpfs on %s: %w", dir, err)
	}
	return nil
}

func bind(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", from, err)
	}
	return nil
}
