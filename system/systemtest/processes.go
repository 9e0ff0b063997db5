package systemtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func testHealth(t *testing.T, n system.Node) {
	h, ok := n.(system.Healther)
	if !ok {
		t.Skip("the system has no health probe")
	}
	if err := h.Health(Context(t)); err != nil {
		t.Errorf("health of a healthy node: %v", err)
	}
	if len(n.Processes()) == 0 {
		return
	}
	// A node which accepts and answers nothing is not healthy.
	defer freeze(t, n)()
	ctx, cancel := context.WithTimeout(Context(t), time.Second)
	defer cancel()
	if err := h.Health(ctx); err == nil {
		t.Error("health of a stopped node: no error")
	}
}

// freeze stops the processes of nodes until the returned function is called.
func freeze(t *testing.T, nodes ...system.Node) (thaw func()) {
	t.Helper()
	all := processes(nodes)
	thaw = func() {
		for _, p := range all {
			signalAll(t, p.PID(), syscall.SIGCONT)
		}
	}
	for _, p := range all {
		for _, group := range signalAll(t, p.PID(), syscall.SIGSTOP) {
			if !stopped(group) {
				thaw()
				t.Fatalf("process group %d does not stop", group)
			}
		}
	}
	return thaw
}

// processes are those of all nodes, each once.
func processes(nodes []system.Node) []*testbed.Process {
	var all []*testbed.Process
	for _, n := range nodes {
		for _, p := range n.Processes() {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// testHang asks nodes that do not answer: calls end at the context's deadline,
// and the nodes serve again once they go on.
func testHang(t *testing.T, s Suite, c system.Cluster) {
	n := storeOf(c)
	if len(processes(c.Nodes())) == 0 {
		t.Skip("no processes that could be stopped")
	}
	data := Bytes("hang", 5000)
	ref := put(t, n, "hang", data)
	ways := ask(n)
	if !s.Truths.PutPassesServer {
		ways["put"] = func(ctx context.Context, _ system.Ref) error {
			_, err := n.Put(ctx, "hang-put", mib, Content("hang-put", mib))
			return err
		}
	}
	thaw := freeze(t, c.Nodes()...)
	const deadline, slack = time.Second, 10 * time.Second // slack: machines under load
	for how, do := range ways {
		ctx, cancel := context.WithTimeout(Context(t), deadline)
		from := time.Now()
		err := do(ctx, ref)
		took := time.Since(from)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s of a system that does not answer: %v, want a deadline exceeded", how, err)
		}
		if took > deadline+slack {
			t.Errorf("%s of a system that does not answer took %v, with a deadline of %v", how, took, deadline)
		}
	}
	thaw()
	var err error
	for end := time.Now().Add(soon); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var got bytes.Buffer
		ctx, cancel := context.WithTimeout(Context(t), soon)
		err = n.Get(ctx, ref, &got)
		cancel()
		if err == nil {
			if !bytes.Equal(got.Bytes(), data) {
				t.Errorf("after a stop: %d bytes that differ from those put", got.Len())
			}
			return
		}
	}
	t.Errorf("get from a system that goes on: %v", err)
}

// kill ends all processes of nodes at once and waits until that is noticed.
func kill(t *testing.T, nodes []system.Node) {
	t.Helper()
	all := processes(nodes)
	for _, p := range all {
		signalAll(t, p.PID(), syscall.SIGKILL)
	}
	for _, p := range all {
		select {
		case <-p.Done():
		case <-time.After(soon):
			t.Error("kill -9 goes unnoticed")
		}
	}
}

// testKilledMidway kills a system while it takes or gives an object: larger
// than what buffers on the way could hold.
func testKilledMidway(t *testing.T, s Suite) {
	const size = 32 * mib
	t.Run("put", func(t *testing.T) {
		if s.Truths.PutPassesServer {
			t.Skip("Put does not need the server")
		}
		c := start(t, s, nil)
		r := io.MultiReader(Content("midway", size/2), &once{do: func() { kill(t, c.Nodes()) }}, Content("midway-2", size/2))
		within(t, "a put that was cut off", func() {
			if ref, err := storeOf(c).Put(Context(t), "midway", size, r); err == nil {
				t.Errorf("a put during which the system was killed: %s and no error", ref)
			}
		})
	})
	t.Run("get", func(t *testing.T) {
		c := start(t, s, nil)
		n := storeOf(c)
		ref, err := system.Seed(Context(t), n, "midway", size, Content("midway", size))
		if err != nil {
			t.Fatal(err)
		}
		w := &once{do: func() { kill(t, c.Nodes()) }}
		within(t, "a get that was cut off", func() {
			if err := n.Get(Context(t), ref, w); err == nil {
				t.Error("a get during which the system was killed: no error")
			}
		})
		if !w.done {
			t.Error("no byte came before the system was killed: the case shows nothing")
		}
	})
}

// once does something when it is first read (it is empty) or written to.
type once struct {
	do   func()
	done bool
}

func (o *once) Read([]byte) (int, error) {
	o.trigger()
	return 0, io.EOF
}

func (o *once) Write(p []byte) (int, error) {
	o.trigger()
	return len(p), nil
}

func (o *once) trigger() {
	if !o.done {
		o.done = true
		o.do()
	}
}

// stopped waits until every thread of a process group is stopped, which takes a
// moment after the signal, or has ended.
func stopped(group int) bool {
	for end := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		stats, err := filepath.Glob("/proc/[0-9]*/task/*/stat")
		running := err != nil
		for _, path := range stats {
			b, _ := os.ReadFile(path) // gone: not running
			_, rest, _ := strings.Cut(string(b), ") ")
			f := strings.Fields(rest) // state, parent, process group
			running = running || len(f) > 2 && f[2] == strconv.Itoa(group) && f[0] != "T" && f[0] != "Z"
		}
		if !running || time.Now().After(end) {
			return !running
		}
	}
}

// signalAll signals the process group of pid and those of all that descends from
// it: some servers give each connection a process in a session of its own.
func signalAll(t *testing.T, pid int, s syscall.Signal) (groups []int) {
	t.Helper()
	groups = family(pid)
	for _, group := range groups {
		if err := syscall.Kill(-group, s); err != nil && (group == pid || !errors.Is(err, syscall.ESRCH)) {
			t.Errorf("%v to process group %d: %v", s, group, err)
		}
	}
	return groups
}

// family is the process group of pid and those of its descendants.
func family(pid int) []int {
	type process struct{ parent, group int }
	all := map[int]process{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, _ := os.ReadFile(path) // gone: no descendant
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 2 { // state, parent, process group
			id, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			parent, _ := strconv.Atoi(f[1])
			group, _ := strconv.Atoi(f[2])
			all[id] = process{parent, group}
		}
	}
	groups := []int{pid}
	for _, p := range all {
		for up := p.parent; up > 1; up = all[up].parent {
			if up == pid && !slices.Contains(groups, p.group) {
				groups = append(groups, p.group)
			}
		}
	}
	return groups
}

func testStop(t *testing.T, c system.Cluster) {
	n := storeOf(c)
	ref := put(t, n, "stop", Bytes("stop", 1000))
	for range 2 {
		if err := c.Stop(Context(t)); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
	for _, p := range processes(c.Nodes()) {
		if err := syscall.Kill(-p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process group %d is there after stop: %v", p.PID(), err)
		}
	}
	wantGone(t, n, ref)
}

// wantGone checks that a node whose server is gone says so, soon.
func wantGone(t *testing.T, n system.Getter, ref system.Ref) {
	t.Helper()
	within(t, "a server that is gone", func() {
		if h, ok := n.(system.Healther); ok {
			if err := h.Health(Context(t)); err == nil {
				t.Error("healthy without a server")
			}
		}
		for how, get := range ask(n) {
			if err := get(Context(t), ref); err == nil || errors.Is(err, system.ErrNotFound) {
				t.Errorf("%s without a server: %v", how, err)
			}
		}
	})
}

func testKilled(t *testing.T, s Suite) {
	c := start(t, s, nil)
	n := storeOf(c)
	ref := put(t, n, "killed", Bytes("killed", 1000))
	kill(t, c.Nodes())
	wantGone(t, n, ref)
}
