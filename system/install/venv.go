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

// oldest is the oldest Python that every lock has files for.
const oldest = "3.10"

// venv makes a virtual environment in dir and installs exactly what the lock names.
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

// pipInstall installs exactly what lock names into the virtual environment dir.
// Only sources are built, and with the packages of the lock build: without
// --no-build-isolation pip would fetch whatever newest version a build asks for.
func pipInstall(ctx context.Context, dir string, log io.Writer, lock, build []byte, sources []string) error {
	install := func(name string, lock []byte, more ...string) error {
		list := filepath.Join(dir, name)
		if err := os.WriteFile(list, lock, 0o644); err != nil {
			return err
		}
		// --no-deps: the lock is complete, and nothing else shall come in.
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

// run executes a command; its error ends with the last lines of what it said.
func run(ctx context.Context, log io.Writer, name string, args ...string) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout = io.MultiWriter(log, &out)
	cmd.Stderr = cmd.Stdout
	// pip starts compilers: the whole group goes when we stop.
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
