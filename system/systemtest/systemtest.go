// Package systemtest is the conformance suite: every system goes through the
// same cases, so that what is built on the contract need not know which it has.
package systemtest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Suite is one system in one configuration.
type Suite struct {
	System  system.System
	Options system.Options
	// Daemon is the name of the program in PLIMSOLL_REQUIRE; empty: the system's.
	Daemon string
	// Attach starts a server of the test's own and returns the options that
	// reach it, and how to end it; nil: the system is started.
	Attach func(t *testing.T) (opt system.Options, kill func())
	// Write: the attached system takes objects, and goes through the cases of a
	// started one as far as they need no processes.
	Write  bool
	Truths Truths
	// Namespaces: its nodes are started in network namespaces only.
	Namespaces bool
}

// writes says whether the system takes objects.
func (s Suite) writes() bool { return s.Attach == nil || s.Write }

// Run runs every case that applies to the system.
func Run(t *testing.T, s Suite) {
	if !s.writes() {
		runAttached(t, s)
		return
	}
	if s.Attach != nil {
		s.Options, _ = s.Attach(t)
	}
	Need(t, cmp.Or(s.Daemon, s.System.Info().Name), s.System.Check(t.Context(), s.Options))
	t.Run("shared", func(t *testing.T) {
		c := start(t, s, nil)
		n := storeOf(c)
		if c.Identity()["version"] == "" {
			t.Errorf("identity %v has no version", c.Identity())
		}
		if want := !s.Truths.InProcess && s.Attach == nil; want != (len(processes(c.Nodes())) > 0) {
			t.Errorf("%d processes to observe; expected: %v", len(processes(c.Nodes())), want)
		}
		t.Run("can", func(t *testing.T) { testCan(t, s, c) })
		t.Run("sizes", func(t *testing.T) { testSizes(t, s, n) })
		t.Run("target", func(t *testing.T) { testTarget(t, n) })
		t.Run("ranges", func(t *testing.T) { testRanges(t, n) })
		t.Run("unknown", func(t *testing.T) { testUnknown(t, s, n) })
		t.Run("bad refs", func(t *testing.T) { testBadRefs(t, s, n) })
		t.Run("names", func(t *testing.T) { testNames(t, s, n) })
		t.Run("bad readers", func(t *testing.T) { testBadReaders(t, n) })
		t.Run("streams", func(t *testing.T) { testStreams(t, s, n) })
		t.Run("cancel", func(t *testing.T) { testCancel(t, s, n) })
		t.Run("cut off", func(t *testing.T) { testCutOff(t, s, n) })
		t.Run("torn", func(t *testing.T) { testTorn(t, s, c) })
		t.Run("concurrent", func(t *testing.T) { testConcurrent(t, s, n) })
		t.Run("list and delete", func(t *testing.T) { testListDelete(t, s, n) })
		t.Run("stat", func(t *testing.T) { testStat(t, s, n) })
		t.Run("update", func(t *testing.T) { testUpdate(t, s, n) })
		t.Run("directory", func(t *testing.T) { testDirectory(t, s, n) })
		t.Run("settle", func(t *testing.T) { testSettle(t, s, n) })
		t.Run("cool", func(t *testing.T) { testCool(t, s, n) })
		t.Run("stats", func(t *testing.T) { testStats(t, n) })
		t.Run("phases", func(t *testing.T) { testPhases(t, n) })
		t.Run("costs", func(t *testing.T) { testCosts(t, n) })
		t.Run("monitor", func(t *testing.T) { testMonitor(t, n) })
		t.Run("redial", func(t *testing.T) { testRedial(t, n) })
		t.Run("connect", func(t *testing.T) { testConnect(t, c) })
		t.Run("health", func(t *testing.T) { testHealth(t, n) })
		t.Run("hang", func(t *testing.T) { testHang(t, s, c) })
		if s.Attach == nil {
			t.Run("stop", func(t *testing.T) { testStop(t, c) })
		}
	})
	if s.Attach != nil || s.Truths.InProcess {
		return // nothing of ours to kill
	}
	t.Run("killed", func(t *testing.T) { testKilled(t, s) })
	t.Run("killed midway", func(t *testing.T) { testKilledMidway(t, s) })
	t.Run("revive", func(t *testing.T) { testRevive(t, s) })
	t.Run("port in use", func(t *testing.T) { testPortInUse(t, s) })
}

// storeOf is the first node of a cluster of an object store.
func storeOf(c system.Cluster) system.Store { return c.Nodes()[0].(system.Store) }

// start brings up a deployment of its own and stops it with the test.
func start(t *testing.T, s Suite, more system.Options) system.Cluster {
	t.Helper()
	c, err := tryStart(t, s, more, s.hosts(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// hosts are a server and a client.
func (s Suite) hosts(t *testing.T) []testbed.Host {
	t.Helper()
	return HostsOf(t, testbed.Options{Plain: !s.Namespaces}, 2)
}

// tryStart uses the last of hosts as the client, the others as servers.
func tryStart(t *testing.T, s Suite, more system.Options, hosts []testbed.Host) (system.Cluster, error) {
	t.Helper()
	opt := system.Options{}
	for _, o := range []system.Options{s.Options, more} {
		for k, v := range o {
			opt[k] = v
		}
	}
	d := system.Deployment{Hosts: hosts[:len(hosts)-1], Client: hosts[len(hosts)-1], Dir: t.TempDir(), Options: opt, Write: s.Write}
	mode := system.Start
	if s.Attach != nil {
		mode, d.Hosts = system.Attach, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), s.startTime())
	t.Cleanup(cancel)
	c, err := d.Begin(ctx, s.System, mode)
	if err != nil {
		return nil, err
	}
	StopAtEnd(t, c)
	return c, nil
}

// Main is the TestMain of every package whose tests start systems: the test
// binary then is also the plimsoll whose subcommands the testbed and the
// systems start.
func Main(m *testing.M, systems ...system.System) {
	handled, err := testbed.ServeNode(context.Background(), os.Args[1:])
	for _, s := range systems {
		e, ok := s.(system.Embedded)
		if ok && !handled && len(os.Args) > 2 && os.Args[1] == "node" && os.Args[2] == s.Info().Name {
			handled, err = true, e.Serve(context.Background(), os.Args[3:], os.Stdout, os.Stderr)
		}
	}
	switch {
	case !handled:
		os.Exit(m.Run())
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Need skips the test when a program is missing here, or fails it when
// PLIMSOLL_REQUIRE (a list: "nginx,versitygw") says that it must be there.
func Need(t *testing.T, name string, problems []system.Problem) {
	t.Helper()
	if len(problems) == 0 {
		return
	}
	text := fmt.Sprintf("%s cannot be started here: %v", name, problems)
	if slices.Contains(strings.Split(os.Getenv("PLIMSOLL_REQUIRE"), ","), name) {
		t.Fatal(text)
	}
	t.Skip(text)
}

// Context ends with the test, or after two minutes.
func Context(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
