package kubernetes

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/remote"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

const testImage = "localhost/plimsoll:test"

// real returns the cluster of three nodes that scripts/cluster/test.sh creates.
func real(t *testing.T, where string) *Cluster {
	t.Helper()
	if os.Getenv("PLIMSOLL_CLUSTER") == "" {
		t.Skip("there is no cluster: make cluster-test makes one")
	}
	c, err := Open(where, Options{Image: testImage, Note: func(s string) { t.Log(s) }})
	must(t, err)
	return c
}

// notShort skips tests that take too long for continuous integration.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make cluster-test runs it")
	}
}

// script runs the tool that created the cluster.
func script(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("../../scripts/cluster/cluster.sh", args...).CombinedOutput(); err != nil {
		t.Fatalf("cluster.sh %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// spec returns the spec of a run, and the credentials of its engine.
func spec(t *testing.T, run string, machines int) (s remote.Spec, ours agent.Credentials) {
	t.Helper()
	ours, theirs, err := agent.NewCredentials()
	must(t, err)
	return remote.Spec{Run: run, Machines: machines, Credentials: theirs}, ours
}

// agentPID returns the ID of the process on this machine that is the agent of a pod.
func agentPID(t *testing.T, m remote.Machine) int {
	t.Helper()
	var pids []int
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, path := range all {
		b, _ := os.ReadFile(path) // it may have ended
		args := strings.Split(string(b), "\x00")
		if slices.Contains(args, "agent") && slices.Contains(args, m.Addr.String()) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			must(t, err)
			pids = append(pids, pid)
		}
	}
	if len(pids) != 1 {
		t.Fatalf("%s: agent is %v", m.Name, pids)
	}
	return pids[0]
}

// Machines are pods on separate nodes. They run plimsoll for authorised callers, come back with
// their files after their agent is killed, and leave nothing.
func TestClusterMachines(t *testing.T) {
	notShort(t)
	c := real(t, "")
	s, ours := spec(t, "machines0001", 3)
	t.Cleanup(func() { must(t, c.Delete(context.Background(), s.Run)) })
	begun := time.Now()
	machines, err := c.Create(t.Context(), s)
	must(t, err)
	t.Logf("3 machines after %s", time.Since(begun))
	nodes := map[string]bool{}
	for i, m := range machines {
		nodes[m.Node] = true
		if m.Name != "pod"+strconv.Itoa(i) || m.Zone != strings.Replace(m.Node, "node", "zone", 1) {
			t.Errorf("%+v", m)
		}
	}
	if len(nodes) != 3 {
		t.Errorf("machines are on %v", nodes)
	}
	var out strings.Builder
	err = c.Exec(t.Context(), machines[1], []string{"--version"}, nil, &out)
	if err != nil || !strings.HasPrefix(out.String(), "plimsoll") {
		t.Errorf("%q, %v", &out, err)
	}
	err = c.Exec(t.Context(), machines[1], []string{"report", "/none"}, strings.NewReader("input"), &out)
	if err == nil || !strings.Contains(err.Error(), "/none") {
		t.Error(err)
	}
	reached := agent.Options{
		Name: "host", On: machines[2].Name, Addr: machines[2].Addr, Credentials: ours, Dial: dial(machines[2]),
	}
	h, err := agent.Reach(t.Context(), reached)
	must(t, err)
	defer h.Close()
	file := machines[2].Dir + "/file"
	must(t, h.Files().Write(t.Context(), file, 0o600, strings.NewReader("content")))
	_, stranger := spec(t, "other", 0)
	_, err = agent.Reach(t.Context(), agent.Options{
		Name: machines[2].Name, Credentials: stranger, Dial: dial(machines[2]),
	})
	if err == nil {
		t.Error("an agent listens to a stranger")
	}

	must(t, syscall.Kill(agentPID(t, machines[2]), syscall.SIGKILL))
	within(t, 30*time.Second, "the agent is back with its files", func() bool {
		again, err := agent.Reach(t.Context(), reached)
		if err != nil {
			return false
		}
		defer again.Close()
		b, err := again.Files().ReadFile(file)
		return err == nil && string(b) == "content"
	})
	within(t, 30*time.Second, "all machines are found again", func() bool {
		again, err := c.Find(t.Context(), s.Run, remote.Machine{})
		return err == nil && slices.Equal(again, machines)
	})
	must(t, c.Delete(t.Context(), s.Run))
	if _, err := c.Find(t.Context(), s.Run, remote.Machine{}); !errors.Is(err, remote.ErrGone) {
		t.Errorf("%v", err)
	}
	if c.left(t.Context(), s.Run) {
		t.Error("the namespace is left")
	}
}

func dial(m remote.Machine) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", m.Agent.String())
	}
}

func within(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after %s: %s", limit, what)
		}
	}
}

type fields = map[string]any

// made creates an object of a resource.
func made(t *testing.T, c *Cluster, path, name string, spec fields) {
	t.Helper()
	o := fields{"metadata": fields{"name": name}, "spec": spec}
	must(t, c.create(t.Context(), path, o, nil))
}

// namespace creates a namespace for all runs of a test.
func namespace(t *testing.T, c *Cluster, name string) {
	t.Helper()
	made(t, c, at(coreAPI, "", "namespaces"), name, nil)
	t.Cleanup(func() {
		_ = c.call(context.Background(), http.MethodDelete, at(coreAPI, "", "namespaces", name), nil, nil)
	})
}

// Check reports what a run would lack, and removes the remains of crashed runs.
func TestClusterCheck(t *testing.T) {
	c := real(t, "")
	const run = "dead00000001"
	dead := fields{"metadata": fields{"name": nameOf(run), "labels": fields{runLabel: run}}}
	must(t, c.create(t.Context(), at(coreAPI, "", "namespaces"), dead, nil))
	within(t, 2*time.Minute, "a node reports its images", func() bool {
		return !slices.ContainsFunc(c.Check(t.Context(), remote.Spec{Machines: 1}),
			func(p engine.Problem) bool { return p.Name == "image" })
	})
	if p := c.Check(t.Context(), remote.Spec{Machines: 1}); len(p) > 0 {
		t.Errorf("a run that is being made: %+v", p)
	}
	if p := c.Check(t.Context(), remote.Spec{Machines: 4}); len(p) != 1 || p[0].Name != "nodes" {
		t.Errorf("more machines than nodes: %+v", p)
	}
	inside, strange := real(t, "/strict"), real(t, "/strict")
	namespace(t, inside, "strict")
	label := fields{"metadata": fields{"labels": fields{enforceLabel: "restricted"}}}
	must(t, c.call(t.Context(), http.MethodPatch, at(coreAPI, "", "namespaces", "strict"), label, nil))
	if p := inside.Check(t.Context(), remote.Spec{Machines: 1, Emulate: true}); len(p) != 1 || p[0].Name != "links" {
		t.Errorf("emulated links at level restricted: %+v", p)
	}
	strange.config.Impersonate.UserName = "stranger"
	must(t, strange.connect())
	if p := strange.Check(t.Context(), remote.Spec{Machines: 1}); len(p) != 1 || p[0].Name != "rights" {
		t.Errorf("a user without rights: %+v", p)
	}
	unborn = 0
	p := c.Check(t.Context(), remote.Spec{Machines: 1})
	unborn = 10 * time.Minute
	if len(p) != 1 || p[0].Blocking || !strings.Contains(p[0].What, "removed what run "+run+" left") {
		t.Errorf("%+v", p)
	}
	if c.left(t.Context(), run) {
		t.Error("it is still there")
	}
}
