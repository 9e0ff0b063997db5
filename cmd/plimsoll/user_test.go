package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The command of an ordinary user runs again in namespaces: with the same standard input, in the same run
// directory.
func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not root: cannot become another user")
	}
	const uid = 54321
	dir, err := os.MkdirTemp("", "plimsoll-user-")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.Executable()
	must(t, err)
	exe := filepath.Join(dir, "plimsoll")
	must(t, os.WriteFile(exe, mustRead(t, self), 0o755))
	must(t, errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, uid, uid)))
	cmd := exec.Command(exe, "run", "--", "-")
	cmd.Dir, cmd.Env = dir, []string{"TMPDIR=" + dir, "HOME=" + dir, "PATH=" + os.Getenv("PATH"), "PLIMSOLL_TEST_MAIN=1"}
	cmd.Stdin = strings.NewReader("scenario: retrieve\nsystems: [static]\ndata: {size: 64kB}\nskip: [machine]\n" +
		"retrieve: {requests: 5}\nrepetitions: 1\nwarmup: 0\nlink: {emulator: none}\n")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	said, err := cmd.CombinedOutput() // the machine may be too busy for a valid trial
	if runs, _ := filepath.Glob(filepath.Join(dir, "runs", "*", "report.html")); len(runs) != 1 {
		t.Errorf("reports %q, %v:\n%s", runs, err, said)
	}
}
