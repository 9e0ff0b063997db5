package agent

import (
	"bytes"
	"context"
	"encoding/gob"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An agent that is the first process of a container waits for processes that have lost their
// parents, and ends when it is asked to.
func TestFirstProcess(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("PID namespaces are root's")
	}
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := authority.Issue(true)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := authority.Issue(false)
	if err != nil {
		t.Fatal(err)
	}
	var credentials bytes.Buffer
	if err := gob.NewEncoder(&credentials).Encode(theirs); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "credentials"), filepath.Join(dir, "socket")
	if err := os.WriteFile(file, credentials.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
		os.Args[0], "node", "agent", "--name", "a", "--listen", "unix:"+socket, "--dir", dir, "--credentials", file)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	defer func() { _ = c.Process.Kill() }()
	var h *Host
	for end := time.Now().Add(20 * time.Second); h == nil; time.Sleep(20 * time.Millisecond) {
		h, err = Reach(t.Context(), Options{
			Name: "a", Addr: netip.MustParseAddr("127.0.0.1"), Credentials: ours, Logs: dir,
			Dial: func(ctx context.Context) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", socket)
			},
		})
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	defer h.Close()
	// The inner sh loses its parent.
	start(t, h, shell("parent", "(setsid sh -c 'sleep 0.1; touch "+dir+"/over' &); sleep 1000"))
	first := children(t, c.Process.Pid)[0]
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(dir + "/over"); err == nil {
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if all := children(t, first); len(all) == 1 { // the agent itself
			break
		} else if time.Now().After(end) {
			t.Fatalf("%v are still children of the first process", all)
		}
	}
	if err := syscall.Kill(first, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}

// children are those of all threads: a process is the child of the thread that forked it.
func children(t *testing.T, pid int) (all []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil || len(files) == 0 {
		t.Fatalf("process %d has no threads: %v", pid, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, f := range strings.Fields(string(b)) {
			n, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, n)
		}
	}
	return all
}
