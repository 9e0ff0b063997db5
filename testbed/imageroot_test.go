package testbed

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// imageRoot is a root with this machine's shell and coreutils' libraries, by links into
// copies, and a command line that enters it.
func imageRoot(t *testing.T) (root string, command []string) {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		_ = os.Chmod(d, 0o755) // an ordinary user enters it, too
	}
	root, at := filepath.Join(dir, "root"), filepath.Join(dir, "mount")
	for _, d := range []string{"bin", "etc", "var/own", "tmp"} {
		must(t, os.MkdirAll(filepath.Join(root, d), 0o755))
	}
	for _, program := range []string{"/bin/sh", "/bin/cat", "/bin/sleep", "/bin/id", "/bin/ls"} {
		out, err := exec.Command("sh", "-c", "echo "+program+"; ldd "+program+" | grep -o '/[^ ]*'").Output()
		must(t, err)
		for _, f := range strings.Fields(string(out)) {
			b, err := os.ReadFile(f)
			must(t, err)
			must(t, os.MkdirAll(filepath.Join(root, filepath.Dir(f)), 0o755))
			must(t, os.WriteFile(filepath.Join(root, f), b, 0o755))
		}
	}
	must(t, os.WriteFile(filepath.Join(root, "etc/mark"), []byte("of the image"), 0o644))
	must(t, os.Mkdir(at, 0o755))
	return root, []string{self(t), "node", "image", root, at, "PATH=/bin", "LANG=image", "OF=image", "--", "/bin/sh",
		"-c"}
}

// What a process sees whose root is an image: its own files, its own directory under the
// same path, nothing else of the machine, and nothing that it could change.
func TestImageAsRoot(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	root, command := imageRoot(t)
	h := addHost(t, newTestbed(t, Options{}), "a")
	for _, own := range []string{filepath.Join(t.TempDir(), "own"),
		filepath.Join("/var", "own", fmt.Sprint("plimsoll-test-", os.Getpid()))} {
		t.Cleanup(func() { os.RemoveAll(own); os.Remove("/var/own") })
		const script = `cat /etc/mark; echo " $OF $LANG $PATH $HOME"; pwd; cat input; echo out > output
			echo x > /etc/mark; echo x > /bin/new; echo x > /tmp/mine && echo x > /run/mine && echo own
			echo x > /dev/null; ls /; test -e /home || echo no home; cat /proc/self/comm; id -u`
		must(t, os.MkdirAll(own, 0o755))
		must(t, os.WriteFile(filepath.Join(own, "input"), []byte("input\n"), 0o644))
		out, in := io.Pipe()
		p := start(t, h, Command{Name: "shell", Dir: own, Stdout: in, Args: append(command, script)})
		got, err := io.ReadAll(out)
		must(t, err)
		<-p.Done()
		want := "of the image image C /bin " + own + "\n" + own + "\ninput\nown\n"
		if !strings.HasPrefix(string(got), want) || !strings.Contains(string(got), "no home\ncat\n0\n") {
			t.Errorf("%s: got\n%s\nwant\n%s…; %v", own, got, want, p.Err())
		}
		if b, err := os.ReadFile(filepath.Join(own, "output")); string(b) != "out\n" {
			t.Errorf("its own file: %q, %v", b, err)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(root, "etc/mark")); string(b) != "of the image" {
		t.Errorf("the image was changed: %q", b)
	}
	if left, _ := os.ReadDir(filepath.Join(root, "tmp")); len(left) > 0 {
		t.Errorf("written into the image: %v", left)
	}
}

// An ordinary user, and one of whom the kernel takes user namespaces away.
func TestImageAsUser(t *testing.T) {
	t.Parallel()
	root, command := imageRoot(t)
	b, err := os.ReadFile(self(t)) // whose directory is closed to others
	command[0] = filepath.Join(filepath.Dir(root), "self")
	must(t, errors.Join(err, os.WriteFile(command[0], b, 0o755)))
	asUser := func(prefix ...string) (string, error) {
		args := append(prefix, append(command, "id -u; cat /etc/mark")...)
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := asUser(); err != nil || out != "54321\nof the image" {
		if strings.Contains(out, "no user namespaces") {
			t.Skip(out)
		}
		t.Errorf("as a user: %v: %s", err, out)
	}
	// In a user namespace whose limit is 0 nobody gets another.
	out, err := asUser("unshare", "--user", "--map-root-user", "sh", "-c",
		`echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all "$@"`, "sh")
	if err == nil || !strings.Contains(out, "image: no user namespaces here") {
		t.Errorf("without user namespaces: %v: %s", err, out)
	}
}

// kill -9 of a process whose root is an image leaves neither processes nor mounts.
func TestKilledInAnImage(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	root, command := imageRoot(t)
	h := addHost(t, newTestbed(t, Options{}), "a")
	p := start(t, h, Command{Name: "shell", Dir: t.TempDir(), Args: append(command, "sleep 600 & wait")})
	pid := p.ID().PID
	eventually(t, "it is the shell", func() bool { return scan()[pid].Comm == "sh" })
	if m := p.Memory(); !(m.RSS > 0) {
		t.Errorf("memory: %+v", m)
	}
	must(t, p.Signal(syscall.SIGKILL))
	<-p.Done()
	must(t, p.Stop(t.Context()))
	if mounted(t, filepath.Dir(root)) {
		t.Error("mounts are left")
	}
	for pid, s := range scan() {
		if s.Comm == "sleep" && !s.dead() && s.Session == p.ID().PID {
			t.Errorf("left: %d", pid)
		}
	}
}
