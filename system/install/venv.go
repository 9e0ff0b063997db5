package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// oldest is the oldest Python for which every lock file lists files.
const oldest = "3.10"

// venv creates a virtual environment in dir and installs exactly the packages in the lock file.
func (p Program) venv(ctx context.Context, dir string, log io.Writer) error {
	python, err := exec.LookPath("python3")
	if err != nil {
		return fmt.Errorf("there is no python3 in PATH; install Python %s or newer (on Debian: apt-get install "+
			"python3-venv)", oldest)
	}
	if err := run(ctx, log, python, "-m", "venv", dir); err != nil {
		return fmt.Errorf("make a virtual environment: %w; on Debian: apt-get install python3-venv", err)
	}
	return pipInstall(ctx, dir, log, p.Lock(), lockNamed("build"), p.Sources)
}

// pipInstall installs exactly the packages in lock into the virtual environment dir. It builds only
// the packages named in sources, with the packages in the lock file build: without
// --no-build-isolation, pip would fetch the newest version of anything that a build requires.
func pipInstall(ctx context.Context, dir string, log io.Writer, lock, build []byte, sources []string) error {
	install := func(name string, lock []byte, more ...string) error {
		list := filepath.Join(dir, name)
		if err := os.WriteFile(list, lock, 0o644); err != nil {
			return err
		}
		// --no-deps: the lock file is complete, and nothing else may be installed.
		args := append([]string{"-m", "pip", "install", "--disable-pip-version-check", "--no-input",
			"--require-hashes", "--no-deps", "--only-binary", ":all:"}, more...)
		return run(ctx, log, filepath.Join(dir, "bin", "python"), append(args, "-r", list)...)
	}
	if len(sources) == 0 {
		return install("lock.txt", lock)
	}
	if err := install("build.txt", build); err != nil {
		return err
	}
	return install("lock.txt", lock, "--no-binary", strings.Join(sources, ","), "--no-build-isolation", "--use-pep517")
}

// run executes a command; its error ends with the last lines of the command's output.
func run(ctx context.Context, log io.Writer, name string, args ...string) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout = io.MultiWriter(log, &out)
	cmd.Stderr = cmd.Stdout
	// pip starts compilers: when we stop, the whole process group is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", filepath.Base(name), context.Cause(ctx))
	}
	return errors.Join(fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args[:min(2, len(args))], " "), err),
		errors.New(last(out.String(), 8)))
}
