package systemtest

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func needPort(t *testing.T, s system.System) {
	t.Helper()
	if !slices.ContainsFunc(s.Info().Options, func(o system.Option) bool { return o.Name == "port" }) {
		t.Skip("the system has no option port")
	}
}

func testPortInUse(t *testing.T, s Suite) {
	needPort(t, s.System)
	hosts := s.hosts(t)
	port := freeOnAll(t, hosts)
	l, err := hosts[0].Listen(Context(t), "tcp", system.JoinPort(hosts[0], port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = tryStart(t, s, system.Options{"port": strconv.Itoa(port)}, hosts)
	if err == nil || !strings.Contains(err.Error(), "port in use") || !strings.Contains(err.Error(), strconv.Itoa(port)) {
		t.Errorf("start on a port in use: %v", err)
	}
}

// swarmPortInUse: when the port of one node is taken the start fails, says of
// which host, and leaves no node behind on the others.
func swarmPortInUse(t *testing.T, s Swarm) {
	needPort(t, s.System)
	hosts := HostsOf(t, testbed.Options{Plain: !s.Namespaces}, 3)
	port := freeOnAll(t, hosts)
	taken := system.JoinPort(hosts[1], port)
	l, err := hosts[1].Listen(Context(t), "tcp", taken)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	name := s.System.Info().Name
	c, err := s.deployment(t.TempDir(), system.Options{"port": strconv.Itoa(port)}, hosts).Begin(Context(t), s.System, system.Start)
	if err == nil {
		t.Errorf("started, though %s was taken", taken)
		if err := c.Stop(Context(t)); err != nil {
			t.Error(err)
		}
		return
	}
	for _, want := range []string{name + ": ", "port in use", taken, hosts[1].Name()} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("start on a port in use: %v; want %q in it", err, want)
		}
	}
	// The first node had its port; nothing holds it any more.
	first, err := hosts[0].Listen(Context(t), "tcp", system.JoinPort(hosts[0], port))
	if err != nil {
		t.Fatalf("a node is left behind by a start that failed: %v", err)
	}
	first.Close()
}

// freeOnAll is a port that is free on every host: plain hosts share the machine's
// loopback, where other tests' nodes have ports too.
func freeOnAll(t *testing.T, hosts []testbed.Host) int {
	t.Helper()
	for range 20 {
		port, err := hosts[0].FreePort(Context(t))
		if err != nil {
			t.Fatal(err)
		}
		free := true
		for _, h := range hosts[1:] {
			l, err := h.Listen(Context(t), "tcp", system.JoinPort(h, port))
			if free = err == nil; !free {
				break
			}
			l.Close()
		}
		if free {
			return port
		}
	}
	t.Fatal("no port is free on every host")
	return 0
}

// FreeAddress is an address of this machine on which nothing listens, with a port
// that the kernel hands to nobody by itself ([testbed.Host.FreePort]).
func FreeAddress(t *testing.T) string {
	t.Helper()
	h := Hosts(t, 1)[0]
	port, err := h.FreePort(Context(t))
	if err != nil {
		t.Fatal(err)
	}
	return system.JoinPort(h, port)
}
