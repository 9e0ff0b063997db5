package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Options select the kind of testbed. With the zero value it has everything that the
// machine offers, and its logs are below the working directory.
type Options struct {
	Dir     string       // logs of this run go to Dir/logs and are kept
	Emulate string       // how links are emulated: "auto" (or empty), "netem", link.Own, "none"
	Plain   bool         // loopback hosts without namespaces, which can reach endpoints outside
	IPv6    bool         // hosts reach one another over IPv6
	Log     func(string) // called with one line per event; may be nil
	Hosts   Hosts        // creates the hosts of AddHost; nil: LocalHost does
	Real    bool         // each host is a machine, with the real links between them
	Mesh    bool         // each host is on its own machine, with emulated links between them
}

// Hosts creates a host behind an agent, on this machine or another.
type Hosts func(ctx context.Context, t *Testbed, name string) (Host, error)

// Remote is a host behind an agent.
type Remote interface {
	Host
	// Poll samples the host's processes and, unless it is ours, its machine. Start and End
	// are not set.
	Poll() []record.Sample
	// Mesh is [Testbed.Mesh] of its machine.
	Mesh(ctx context.Context, q MeshCall) (MeshAnswer, error)
	// Lost says why the host cannot be reached any more; nil: it can.
	Lost() error
}

// RoleAgent is the role of agent processes, which are not sampled; RoleEmulator that of the
// link emulator.
const (
	RoleAgent    = "agent"
	RoleEmulator = "emulator"
)

// Mode is what the testbed can do on this machine. It is recorded.
type Mode struct {
	Namespaces bool   `json:"namespaces"`
	Emulator   string `json:"emulator"`       // "netem", link.Own (with tbf for links that have only a rate) or "none"
	Real       bool   `json:"real,omitempty"` // real links between machines: measured, never shaped
	Mesh       bool   `json:"mesh,omitempty"` // links are emulated between machines
	Why        string `json:"why,omitempty"`  // why links are not emulated, one sentence
}

// Testbed is a set of hosts with links between them.
// It is safe for concurrent use.
type Testbed struct {
	opt    Options
	self   string // this executable
	runDir *runDir
	net    *network // nil without namespaces
	hub    *host    // in the hub's namespace, for the emulator's process; nil without
	mode   Mode     // does not change after New

	mu     sync.Mutex
	hosts  []*host
	apart  []*host           // those of Outside and OwnNetwork
	remote []Remote          // hosts behind an agent
	labels map[string]string // process label → its host
	closed bool

	watched []*watched // attached servers on this machine

	starting sync.WaitGroup // processes that are being started

	shape shaper
	mesh  mesh

	looking     sync.Mutex      // one poll at a time: a decreasing counter is taken for a process that has ended
	polling     sync.Mutex      // of processes on this machine, also when one is stopped
	lastSamples []record.Sample // of processes that have ended since the last poll
	box         box
}

// New creates an empty testbed, after removing what crashed runs left behind. The caller must
// Close it. If plimsoll dies before that, a watchdog process kills the testbed's processes
// and removes its scratch directories; the kernel removes its namespaces, which only our
// descriptors hold.
func New(ctx context.Context, opt Options) (*Testbed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("testbed: find our own executable: %w", err)
	}
	if opt.Dir, err = filepath.Abs(opt.Dir); err != nil {
		return nil, fmt.Errorf("testbed: %w", err)
	}
	t := &Testbed{opt: opt, self: self, labels: map[string]string{}}
	if err := os.MkdirAll(t.Logs(), 0o755); err != nil {
		return nil, fmt.Errorf("testbed: log directory: %w", err)
	}
	removed, err := CleanDead()
	for _, r := range removed {
		t.log("removed what a crashed run left, and its directory " + r)
	}
	if err != nil {
		t.log("cannot remove everything that crashed runs left: " + err.Error())
	}
	raiseFileLimit()
	if t.runDir, err = newRunDir(t.self); err != nil {
		return nil, err
	}
	if err := t.choose(); err != nil {
		return nil, errors.Join(err, t.runDir.close())
	}
	return t, nil
}

// choose decides between namespaces and plain loopback, and opens the network.
func (t *Testbed) choose() (err error) {
	var missing []Problem
	t.shape.active = "none"
	t.mode, t.shape.ownWorks, missing = t.opt.emulation()
	t.mode.Mesh = t.opt.Mesh
	for _, p := range missing {
		if p.Blocking { // the emulator that was asked for
			return fmt.Errorf("testbed: emulator %s: %s (%s)", t.opt.Emulate, p.What, p.Hint)
		}
	}
	if !t.mode.Namespaces {
		return nil
	}
	if t.net, err = newNetwork(t.opt.IPv6); err != nil {
		if t.opt.Emulate == "netem" || t.opt.Emulate == link.Own {
			return fmt.Errorf("testbed: emulator %s needs a network of hosts: %w", t.opt.Emulate, err)
		}
		t.mode = Mode{Emulator: "none", Why: "links are not emulated: no network of hosts could be made here (" +
			err.Error() + ")"}
		return nil
	}
	t.hub = &host{t: t, name: "hub", ns: t.net.hub, keeper: startKeeper(t.net.hub)}
	tbf := t.mode.Emulator == link.Own && (t.opt.Emulate == "" || t.opt.Emulate == "auto")
	t.shape.tbfWorks = sync.OnceValue(func() bool { return tbf && link.Works(link.TBFDiscipline) == nil })
	return nil
}

// Mode returns what this testbed can do on this machine.
func (t *Testbed) Mode() Mode { return t.mode }

// Self returns the command line of a subcommand of plimsoll.
func (t *Testbed) Self(args ...string) []string { return append([]string{t.self}, args...) }

// AddHost adds a host that every other host can reach. Hosts live as long as the testbed.
func (t *Testbed) AddHost(ctx context.Context, name string) (Host, error) {
	if t.opt.Hosts == nil {
		return t.LocalHost(name, 0)
	}
	h, err := t.opt.Hosts(ctx, t, name)
	if err != nil {
		return nil, fmt.Errorf("testbed: add host %s: %w", name, err)
	}
	if r, ok := h.(Remote); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.remote = append(t.remote, r)
	}
	return h, nil
}

// LocalHost adds a host on this machine, regardless of Options.Hosts. Its addresses are derived
// from a number; 0: the next one.
func (t *Testbed) LocalHost(name string, number int) (Host, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fmt.Errorf("testbed: add host %s: the testbed is closed", name)
	}
	if slices.ContainsFunc(t.hosts, func(h *host) bool { return h.name == name }) {
		return nil, fmt.Errorf("testbed: add host %s: there is one already", name)
	}
	h := &host{t: t, name: name, index: cmp.Or(number, len(t.hosts)+1)}
	if h.index > maxHosts {
		return nil, fmt.Errorf("testbed: add host %s: more than %d hosts", name, maxHosts)
	}
	if t.net == nil {
		h.addr = netip.AddrFrom4([4]byte{127, 0, byte((h.index + 1) >> 8), byte(h.index + 1)})
		h.keeper = startKeeper(nil)
	} else if err := t.net.attach(h, t.hosts); err != nil {
		return nil, fmt.Errorf("testbed: add host %s: %w", name, err)
	}
	t.hosts = append(t.hosts, h)
	return h, nil
}

// Outside adds a host on this machine's own network, from which attached systems are
// reached. Its links are never shaped, and hosts with namespaces cannot reach it.
func (t *Testbed) Outside(ctx context.Context, name string) (Host, error) {
	if t.net == nil && !t.opt.Real {
		return t.AddHost(ctx, name)
	}
	return t.OwnNetwork(name, netip.AddrFrom4([4]byte{127, 0, 0, 2}))
}

// OwnNetwork adds a host that is the network this process was started in, as agents need.
// Other hosts reach it at addr.
func (t *Testbed) OwnNetwork(name string, addr netip.Addr) (Host, error) {
	h := &host{t: t, name: name, addr: addr, keeper: startKeeper(nil)}
	if !addr.IsLoopback() { // which all share
		var err error
		if h.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return nil, fmt.Errorf("testbed: add host %s: %w", name, err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fmt.Errorf("testbed: add host %s: the testbed is closed", name)
	}
	t.apart = append(t.apart, h)
	return h, nil
}

// maxHosts keeps the last two bytes of an address from overflowing and from being the
// broadcast address.
const maxHosts = 1000

// Logs is the directory for the logs of processes.
func (t *Testbed) Logs() string { return filepath.Join(t.opt.Dir, "logs") }

// Scratch creates a directory that is removed with the testbed, even if plimsoll is killed.
func (t *Testbed) Scratch(name string) (string, error) {
	dir, err := os.MkdirTemp(t.runDir.dir, sanitize(name)+"-")
	if err != nil {
		return "", fmt.Errorf("testbed: scratch directory: %w", err)
	}
	return dir, nil
}

// Close stops all processes and removes links, hosts and scratch directories. It is
// idempotent. When ctx ends, processes that have not stopped yet are killed.
func (t *Testbed) Close(ctx context.Context) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	hosts := slices.Concat(t.hosts, t.apart)
	t.mu.Unlock()
	t.starting.Wait() // forking takes no time

	errs := []error{StopAll(ctx, processes(hosts...)), t.shape.close(ctx)}
	for _, h := range hosts {
		errs = append(errs, h.close())
	}
	if t.net != nil {
		t.hub.keeper.stop()
		errs = append(errs, t.net.close())
	}
	errs = append(errs, t.runDir.close())
	return errors.Join(errs...)
}

// StopAll stops processes in parallel, so that a slow one does not delay the others.
func StopAll[P Process](ctx context.Context, procs []P) error {
	return errors.Join(AtOnce(len(procs), func(i int) error { return procs[i].Stop(ctx) })...)
}

// AtOnce does n things at once, and returns the error of each.
func AtOnce(n int, do func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errs
}

// processes returns the processes of these hosts that were started and not yet stopped.
func processes(hosts ...*host) []*process {
	var all []*process
	for _, h := range hosts {
		h.mu.Lock()
		all = append(all, h.procs...)
		h.mu.Unlock()
	}
	return all
}

func (t *Testbed) log(line string) {
	if t.opt.Log != nil {
		t.opt.Log(line)
	}
}

// raiseFileLimit raises the soft limit of open files to the hard one, for us and (because
// it is set explicitly) for the processes that we start: 1000 connections do not fit into
// the usual 1024.
func raiseFileLimit() {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) == nil {
		r.Cur = r.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &r)
	}
}
