// Package systemtest is the conformance suite: every system goes through the
// same cases, so that what is built on the contract need not know which it has.
package systemtest

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

// Suite is one object store in one configuration.
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
	// Namespaces: its nodes are started in network namespaces only, as all are that reach outside of a run.
	Namespaces bool
	// Brief: another suite of the same system kills its nodes in the midst of their work.
	Brief bool
	// Image: another suite has the same system without one; the cases are those that meet
	// its files and processes.
	Image bool
}

// Truths is what holds of one system and not of all; the zero value is a system
// which keeps the whole contract.
type Truths struct {
	// MinSize is the smallest object that the system takes; smaller ones must be refused.
	MinSize int64
	// Unknown are well-formed refs of objects that were never stored; nil: "no-such-object".
	Unknown []system.Ref
	// Malformed are refs that no object can have, beyond those tried with every system.
	Malformed []system.Ref
	// Without are words of Info.Can which these options take away from the nodes.
	Without []string
	// ContentAddressed: the ref follows from the content, so that the same
	// content has the same ref and names are not kept.
	ContentAddressed bool
	// DeleteTakesShared: Delete takes blocks that other objects need.
	DeleteTakesShared bool
	// CutOffStays: what arrived of a put that was cut off may become an object, by a ref that
	// its caller never hears. Only a list has it.
	CutOffStays bool
	// PutPassesServer: Put writes where the server reads, so that it goes on
	// when the server does not.
	PutPassesServer bool
	// InProcess: there are no processes that could be observed, stopped or killed.
	InProcess bool
	// Slow: a MiB, or to start, takes the system long. Cases whose point does not
	// need the bytes use fewer of them, and starting may take minutes.
	Slow bool
}

// objects is a case under way on the first node of a deployment.
type objects struct {
	*testing.T
	Suite
	c    system.Cluster
	n    system.Store
	from testbed.Host // where clients are
}

// objectCases are those of a deployment that all share, in their order. One that
// needs an ability is left out where the node has it not.
var objectCases = []struct {
	name, needs string
	body        func(*objects)
}{
	{"sizes", "", (*objects).sizes},
	{"names", "", (*objects).names},
	{"unknown", "", func(k *objects) { k.unknownRefs(k.n) }},
	{"bad readers", "", (*objects).badReaders},
	{"streams", "", (*objects).streams},
	{"cancel", "", (*objects).cancel},
	{"torn", "", (*objects).torn},
	{"concurrent", "", (*objects).concurrent},
	{"target", "http", (*objects).target},
	{"cut off", "http", (*objects).cutOff},
	{"ranges", "range", (*objects).ranges},
	{"list", "list", (*objects).list},
	{"delete", "delete", (*objects).delete},
	{"stat", "stat", (*objects).stat},
	{"update", "update", (*objects).update},
	{"directory", "directory", (*objects).directory},
	{"settle", "durable", (*objects).settle},
	{"cool", "cold", (*objects).cool},
	{"redial", "fresh", (*objects).redial},
	{"stats", "stats", (*objects).stats},
	{"phases", "phases", (*objects).phases},
	{"costs", "cost", func(k *objects) { k.costs(k.n) }},
	{"monitor", "monitor", func(k *objects) { k.monitor(k.n) }},
	{"health", "", (*objects).health},
	{"hang", "", (*objects).hang},
	{"stop", "", (*objects).stop},
}

var imageCases = strings.Fields("sizes concurrent list delete health stop")

// apartCases have deployments of their own, which they kill.
var apartCases = []struct {
	name string
	body func(Suite, *testing.T)
}{
	{"killed in a put", Suite.killedInPut},
	{"killed in a get", Suite.killedInGet},
	{"revive", Suite.revive},
	{"port in use", Suite.portInUse},
}

// Run runs every case that applies to an object store.
func Run(t *testing.T, s Suite) {
	if s.Attach != nil && !s.Write {
		runAttached(t, s)
		return
	}
	if s.Attach != nil {
		s.Options, _ = s.Attach(t)
	}
	Need(t, cmp.Or(s.Daemon, s.System.Info().Name), system.Check(t.Context(), s.System, s.Options))
	t.Run("shared", func(t *testing.T) {
		k := s.start(t)
		if k.c.Identity()["version"] == "" {
			t.Errorf("identity %v has no version", k.c.Identity())
		}
		if want := !s.Truths.InProcess && s.Attach == nil; want != (len(processes(k.c.Nodes()...)) > 0) {
			t.Errorf("%d processes to observe; expected: %v", len(processes(k.c.Nodes()...)), want)
		}
		wantAbilities(t, s.System, k.c, s.Truths.Without)
		can := system.Abilities(k.n)
		for _, c := range objectCases {
			t.Run(c.name, func(t *testing.T) {
				if s.Image && !slices.Contains(imageCases, c.name) {
					t.Skip("the suite without an image has it")
				}
				if c.needs != "" && !slices.Contains(can, c.needs) {
					t.Skipf("the system has no ability %q", c.needs)
				}
				c.body(&objects{t, s, k.c, k.n, k.from})
			})
		}
	})
	if s.Attach != nil || s.Truths.InProcess {
		return // nothing of ours to kill
	}
	for _, c := range apartCases {
		if s.Brief && c.name != "killed in a get" || s.Image && c.name == "killed in a put" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.body(s, t)
		})
	}
}

// start brings up a deployment of its own and stops it with the test.
func (s Suite) start(t *testing.T) *objects {
	t.Helper()
	d, mode := s.deployment(t), system.Start
	if s.Attach != nil {
		mode, d.Hosts = system.Attach, nil
	}
	limit := 2 * time.Minute
	if s.Truths.Slow { // a private chain with funds and contracts takes a minute or two to form
		limit = 10 * time.Minute
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	c, err := system.Begin(ctx, s.System, mode, d)
	must(t, "start", err)
	StopAtEnd(t, c)
	wantHostDirs(t, d)
	n, _ := c.Nodes()[0].(system.Store) // attached for reading: not all take objects
	return &objects{t, s, c, n, d.Client}
}

// deployment is of a server and a client.
func (s Suite) deployment(t *testing.T) system.Deployment {
	t.Helper()
	plain := s.Attach != nil || !s.Namespaces && s.System.Info().Outside == ""
	hosts := HostsOf(t, testbed.Options{Plain: plain}, 2)
	return system.Deployment{Hosts: hosts[:1], Client: hosts[1], Dir: t.TempDir(),
		Options: maps.Clone(s.Options), Write: s.Write}
}

// size is the amount that a case uses: little for a slow system.
func (s Suite) size(usual, slow int64) int64 {
	if s.Truths.Slow {
		return slow
	}
	return usual
}

// unknown are well-formed refs of nothing.
func (s Suite) unknown() []system.Ref {
	if s.Truths.Unknown == nil {
		return []system.Ref{"no-such-object"}
	}
	return s.Truths.Unknown
}

func (k *objects) put(name string, data []byte) system.Ref {
	k.Helper()
	return store(k.n.Put).bytes(k.T, name, data)
}

func (k *objects) seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return system.Seed(ctx, k.n, name, size, r)
}

func (k *objects) seeded(name string, size int64) system.Ref {
	k.Helper()
	ref, err := k.seed(Context(k.T), name, size, Content(name, size))
	must(k.T, "seed "+name, err)
	return ref
}

func (k *objects) want(ref system.Ref, data []byte) {
	k.Helper()
	wantContent(k.T, "get "+string(ref), data, func(w io.Writer) error { return k.n.Get(Context(k.T), ref, w) })
}

// Main is the TestMain of every package whose tests start systems: the test
// binary then is also the plimsoll whose subcommands the testbed and the
// systems start.
func Main(m *testing.M, systems ...system.System) {
	handled, err := agent.ServeNode(context.Background(), os.Args[1:])
	for _, s := range systems {
		e, ok := s.(system.Embedded)
		if ok && !handled && len(os.Args) > 2 && os.Args[1] == "node" && os.Args[2] == s.Info().Name {
			handled, err = true, e.Serve(context.Background(), os.Args[3:], os.Stdout, os.Stderr)
		}
	}
	switch {
	case !handled:
		// Cases wait for slow nodes more than they compute.
		if err := flag.Set("test.parallel", "6"); err != nil {
			panic(err)
		}
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

// Attach attaches to what opt says until the test ends.
func Attach(t *testing.T, s system.System, opt system.Options, write bool) (system.Cluster, error) {
	t.Helper()
	c, err := system.Begin(Context(t), s, system.Attach, system.Deployment{Client: Hosts(t, 1)[0], Dir: t.TempDir(),
		Options: opt, Write: write})
	if err == nil {
		StopAtEnd(t, c)
	}
	return c, err
}

// Start starts a system until the test ends, with the client on the last of the hosts.
func Start(t *testing.T, s system.System, opt system.Options, hosts []testbed.Host) system.Cluster {
	t.Helper()
	last := len(hosts) - 1
	c, err := system.Begin(Context(t), s, system.Start, system.Deployment{Hosts: hosts[:last], Client: hosts[last],
		Dir: t.TempDir(), Options: opt, Swarm: slices.Contains(s.Info().Can, "spread") && last > 1})
	Must(t, err)
	StopAtEnd(t, c)
	return c
}

// StopAtEnd stops a cluster when the test is over, within half a minute.
func StopAtEnd(t *testing.T, c system.Cluster) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := c.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
}
