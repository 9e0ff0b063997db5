package workload

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// asNobody runs the test again as an ordinary user, because root can read everything.
func asNobody(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "plimsoll-nobody-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	// The binary is where only root may read it.
	src, err := os.ReadFile(os.Args[0])
	must(t, err)
	bin := filepath.Join(dir, "test")
	must(t, os.WriteFile(bin, src, 0o755))
	must(t, os.Chmod(dir, 0o777))
	cmd := exec.Command(bin, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	t.Logf("as nobody:\n%s", out)
	must(t, err)
}
