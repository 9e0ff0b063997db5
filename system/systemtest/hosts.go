package systemtest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Hosts is n hosts on plain loopback: what is tested here are systems, not links.
func Hosts(t *testing.T, n int) []testbed.Host {
	t.Helper()
	return HostsOf(t, testbed.Options{Plain: true}, n)
}

// HostsOf are the hosts of [Bed].
func HostsOf(t *testing.T, opt testbed.Options, n int) []testbed.Host {
	t.Helper()
	_, hosts := Bed(t, opt, n)
	return hosts
}

// SlowHosts are n hosts in namespaces whose links carry rate bits a second.
func SlowHosts(t *testing.T, rate float64, n int) []testbed.Host {
	t.Helper()
	tb, hosts := Bed(t, testbed.Options{}, n)
	if mode := tb.Mode(); mode.Emulator == "none" {
		t.Skip(mode.Why)
	}
	links := map[string]link.Params{}
	for _, h := range hosts {
		links[h.Name()] = link.Params{Rate: rate}
	}
	if err := tb.Shape(Context(t), testbed.ShapeSpec{Up: links, Down: links}); err != nil {
		t.Fatal(err)
	}
	return hosts
}

// Bed is a testbed that ends with the test, and n hosts of it. It skips the test when
// namespaces are wanted and this machine gives us none.
func Bed(t *testing.T, opt testbed.Options, n int) (*testbed.Testbed, []testbed.Host) {
	t.Helper()
	opt.Dir = t.TempDir()
	opt.Hosts = agent.Wanted()
	tb, err := testbed.New(Context(t), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := tb.Close(ctx); err != nil {
			t.Errorf("close the testbed: %v", err)
		}
	})
	if mode := tb.Mode(); !opt.Plain && !mode.Namespaces {
		t.Skip(mode.Why)
	}
	hosts := make([]testbed.Host, n)
	for i := range hosts {
		if hosts[i], err = tb.AddHost(Context(t), fmt.Sprintf("h%d", i+1)); err != nil {
			t.Fatal(err)
		}
	}
	return tb, hosts
}

// wantHostDirs holds that below the directory of a deployment there is nothing but
// the directories of its hosts.
func wantHostDirs(t *testing.T, d system.Deployment) {
	t.Helper()
	all, err := os.ReadDir(d.Dir)
	must(t, "directory of the deployment", err)
	for _, e := range all {
		if !slices.ContainsFunc(append(d.Hosts, d.Client), func(h testbed.Host) bool { return h.Name() == e.Name() }) {
			t.Errorf("%s is no host's, and below the directory of the deployment", e.Name())
		}
	}
}

// FreeAddress is an address of this machine on which nothing listens, with a port
// that the kernel gives to no one by itself ([testbed.Host.Port]).
func FreeAddress(t *testing.T) string {
	t.Helper()
	h := Hosts(t, 1)[0]
	port, err := h.Port(Context(t), 0)
	must(t, "free port", err)
	return system.JoinPort(h, port)
}
