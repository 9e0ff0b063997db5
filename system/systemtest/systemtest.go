// Package systemtest is the conformance suite: every system passes the same cases, so that code
// based on the interfaces need not know which system it uses.
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
	// Attach starts a server for the test, and returns the options to reach it and a function that
	// kills it; nil: the system is started.
	Attach func(t *testing.T) (opt system.Options, kill func())
	// Write is set if the attached system accepts objects. It is then tested like a started system,
	// except for cases that need processes.
	Write  bool
	Truths Truths
	// Namespaces is set if its nodes are started only in network namespaces, like all systems with
	// traffic beyond a run's network.
	Namespaces bool
	// Brief is set if another suite of the same system kills its nodes during their work; one without
	// an image does so in a get even then.
	Brief bool
	// Image is set if another suite tests the same system without an image; only cases that involve
	// its files and processes run.
	Image bool
}

// Truths are the deviations of a system; the zero value is a system that fulfils the whole
// contract.
type Truths struct {
	// MinSize is the smallest object that the system accepts; smaller ones must be refused.
	MinSize int64
	// Unknown are well-formed refs of objects that were never stored; nil: "no-such-object".
	Unknown []system.Ref
	// Malformed are impossible refs, in addition to those tried with every system.
	Malformed []system.Ref
	// Without are words of Info.Can that nodes lack with these options.
	Without []string
	// ContentAddressed is set if the ref follows from the content, so that equal content has the
	// same ref and names are not stored.
	ContentAddressed bool
	// DeleteTakesShared is set if Delete removes blocks that other objects need.
	DeleteTakesShared bool
	// CutOffStays is set if the part of an interrupted put that arrived may become an object, with
	// a ref that the caller never learns. Only a list contains it.
	CutOffStays bool
	// PutPassesServer is set if Put writes where the server reads, so that it works without the
	// server.
	PutPassesServer bool
	// InProcess is set if there are no processes to observe, stop or kill.
	InProcess bool
	// Slow is set if the system takes long for a MiB, or to start. Cases that do not depend on the
	// amount use fewer bytes, and starting may take minutes.
	Slow bool
}

// objects is a running case on the first node of a deployment.
type objects struct {
	kit
	Suite
	c    system.Cluster
	n    system.Store
	from testbed.Host // the clients' host
}

// objectCases are the cases that share one deployment, in order. A case is skipped if the node
// lacks the ability that it needs.
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
	{"monitor", "monitor", func(k *objects) { k.monitor(k.n) }},
	{"health", "", (*objects).health},
	{"hang", "", (*objects).hang},
	{"stop", "", (*objects).stop},
}

// simple is an unknown ref for some systems, and a malformed one for others.
const simple = "no-such-object"

var imageCases = strings.Fields("sizes concurrent list delete health stop")

// Run runs every case that applies to an object store.
func Run(t *testing.T, s Suite) {
	var kill func()
	if s.Attach != nil {
		s.Options, kill = s.Attach(t)
	}
	if problems := system.Check(t.Context(), s.System, s.Options); s.Attach != nil && len(problems) > 0 {
		t.Fatalf("check: %v", problems)
	}
	Need(t, s.System, s.Options)
	if s.Truths.Unknown == nil {
		s.Truths.Unknown = []system.Ref{simple}
	}
	t.Run("shared", func(t *testing.T) {
		k := s.start(t)
		if want := !s.Truths.InProcess && s.Attach == nil; want != (len(processes(k.c.Nodes()...)) > 0) {
			t.Errorf("%d processes to observe; expected: %v", len(processes(k.c.Nodes()...)), want)
		}
		k.wantAbilities(s.System, k.c, s.Truths.Without)
		if s.Attach != nil && !s.Write {
			k.attached(kill)
			return
		}
		can := system.Abilities(k.n)
		for _, c := range objectCases {
			t.Run(c.name, func(t *testing.T) {
				if s.Image && !slices.Contains(imageCases, c.name) {
					t.Skip("the suite without an image has it")
				}
				if c.needs != "" && !slices.Contains(can, c.needs) {
					t.Skipf("the system has no ability %q", c.needs)
				}
				c.body(&objects{kit{t}, s, k.c, k.n, k.from})
			})
		}
	})
	if s.Attach == nil && !s.Truths.InProcess && !(s.Image && s.Brief) {
		s.runKills(t)
	}
}

// runKills runs the cases that kill or start processes.
func (s Suite) runKills(t *testing.T) {
	for name, body := range map[string]func(*testing.T){
		"killed in a put": s.killedInPut,
		"killed in a get": s.killedInGet,
		"revive":          s.revive,
		"port in use":     func(t *testing.T) { kit{t}.wantPortInUse(s.System, s.deployment(t)) },
	} {
		if s.Brief && name != "killed in a get" || s.Image && name == "killed in a put" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body(t)
		})
	}
}

// start starts a separate deployment and stops it at the end of the test.
func (s Suite) start(t *testing.T) *objects {
	d, mode, limit := s.deployment(t), system.Start, 2*time.Minute
	if s.Attach != nil {
		mode, d.Hosts = system.Attach, nil
	}
	if s.Truths.Slow { // a private chain with funds and contracts takes a minute or two to form
		limit = 10 * time.Minute
	}
	c := kit{t}.bringUp(s.System, mode, d, limit)
	n, _ := c.Nodes()[0].(system.Store) // attached for reading: not every node accepts objects
	return &objects{kit{t}, s, c, n, d.Client}
}

// deployment returns a deployment with a server and a client.
func (s Suite) deployment(t *testing.T) system.Deployment {
	plain := s.Attach != nil || !s.Namespaces && s.System.Info().ReachesOut == ""
	d := deployment(t, HostsOf(t, testbed.Options{Plain: plain}, 2), s.Options)
	d.Write = s.Write
	return d
}

// size returns the amount that a case uses: little for a slow system.
func (s Suite) size(usual, slow int64) int64 {
	if s.Truths.Slow {
		return slow
	}
	return usual
}

// put stores the content of that name.
func (k *objects) put(name string, size int64) object {
	return k.store(k.n.Put, name, Bytes(name, size))
}

func (k *objects) seed(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return system.Seed(ctx, k.n, name, size, r)
}

// seeds reports whether the node seeds otherwise than by Put.
func (k *objects) seeds() bool {
	_, is := k.n.(system.Seeder)
	return is
}

// seeded seeds content of that size without holding it in memory: it may be large.
func (k *objects) seeded(name string, size int64) system.Ref {
	ref, err := k.seed(k.ctx(), name, size, Content(name, size))
	k.must("seed "+name, err)
	return ref
}

// want checks that objects have their content.
func (k *objects) want(all ...object) {
	for _, o := range all {
		k.wantContent("get "+string(o.ref), o.data, func(w io.Writer) error { return k.n.Get(k.ctx(), o.ref, w) })
	}
}

// failsUnknown checks that an operation on a ref that was never stored fails soon.
func (k *objects) failsUnknown(what string, do func(context.Context, system.Ref) error, want ...error) {
	for _, ref := range k.Truths.Unknown {
		k.failsSoon(what+" of an unknown ref", func() error { return do(k.ctx(), ref) }, want...)
	}
}

// Main is the TestMain of every package whose tests start systems: the test binary also serves as
// the plimsoll program whose subcommands the testbed and the systems start.
func Main(m *testing.M, systems ...system.System) {
	handled, err := agent.ServeNode(context.Background(), os.Args[1:])
	for _, s := range systems {
		e, ok := s.(system.Embedded)
		if ok && !handled && len(os.Args) > 2 && os.Args[1] == "node" && os.Args[2] == s.Info().Name {
			handled, err = true, e.Serve(context.Background(), os.Args[3:], os.Stdout, os.Stderr)
		}
	}
	if !handled {
		// Cases mostly wait for slow nodes rather than compute.
		err = flag.Set("test.parallel", "6")
		m.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// programs are the programs of systems with another name.
var programs = map[string]string{"s3": "versitygw", "sftp": "sshd", "scp": "sshd"}

// Need skips the test if a system cannot be started with these options, or fails it if
// PLIMSOLL_REQUIRE (a list: "nginx,versitygw") requires its program.
func Need(t *testing.T, s system.System, opt system.Options) {
	t.Helper()
	problems := system.Check(t.Context(), s, opt)
	if len(problems) == 0 {
		return
	}
	name := cmp.Or(programs[s.Info().Name], s.Info().Name)
	text := fmt.Sprintf("%s cannot be started here: %v", name, problems)
	if slices.Contains(strings.Split(os.Getenv("PLIMSOLL_REQUIRE"), ","), name) {
		t.Fatal(text)
	}
	t.Skip(text)
}

// Attach attaches with the options opt until the test ends.
func Attach(t *testing.T, s system.System, opt system.Options, write bool) (system.Cluster, error) {
	t.Helper()
	d := deployment(t, Hosts(t, 1), opt)
	d.Write = write
	return begin(Context(t), t, s, system.Attach, d)
}

// Start starts a system until the test ends, with the client on the last host.
func Start(t *testing.T, s system.System, opt system.Options, hosts []testbed.Host) system.Cluster {
	t.Helper()
	d := deployment(t, hosts, opt)
	d.Swarm = slices.Contains(s.Info().Can, "spread") && len(d.Hosts) > 1
	c, err := begin(Context(t), t, s, system.Start, d)
	Must(t, err)
	return c
}

// deployment returns a deployment whose client is on the last host.
func deployment(t *testing.T, hosts []testbed.Host, opt system.Options) system.Deployment {
	last := len(hosts) - 1
	d := system.Deployment{Hosts: hosts[:last], Client: hosts[last], Dir: t.TempDir(), Options: system.Options{}}
	maps.Copy(d.Options, opt)
	return d
}

// begin starts or attaches to a system until the test ends.
func begin(ctx context.Context, t *testing.T, s system.System, mode system.Mode, d system.Deployment) (system.Cluster,
	error) {
	c, err := system.Begin(ctx, s, mode, d)
	if err == nil {
		AtEnd(t, "stop", c.Stop)
	}
	return c, err
}

// bringUp begins a deployment for cases.
func (k kit) bringUp(s system.System, mode system.Mode, d system.Deployment, limit time.Duration) system.Cluster {
	c, err := begin(k.limited(limit), k.T, s, mode, d)
	k.must("start", err)
	k.wantHostDirs(d)
	if c.Identity()["version"] == "" {
		k.Errorf("identity %v has no version", c.Identity())
	}
	return c
}
