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

// Options say what kind of testbed is wanted. The zero value is one with
// everything the machine can give and logs below the working directory.
type Options struct {
	Dir     string       // logs of this run go to Dir/logs; kept
	Emulate string       // "auto" (or empty), "netem", link.Own, "none": how links are emulated
	Plain   bool         // loopback hosts without namespaces: a run that attaches to endpoints outside needs them
	IPv6    bool         // hosts reach one another over IPv6
	Log     func(string) // called with what happens, one line each; may be nil
	Hosts   Hosts        // makes the hosts of AddHost; nil: LocalHost does
	Real    bool         // hosts are machines, and links are those between them: none is emulated
	Mesh    bool         // hosts are on machines of their own, and the links between them are emulated
}

// Hosts makes a host: behind an agent on this machine, or on another.
type Hosts func(ctx context.Context, t *Testbed, name string) (Host, error)

// Remote is a host behind an agent.
type Remote interface {
	Host
	// Poll is samples of the host's processes and, if it is another, of its machine. Start
	// and End are not set.
	Poll() []record.Sample
	// Mesh is [Testbed.Mesh] of its machine.
	Mesh(ctx context.Context, q MeshCall) (MeshAnswer, error)
	// Lost is why the host is out of reach for good; nil: it is not.
	Lost() error
}

// RoleAgent is the role of agents' processes, which have no samples; RoleEmulator that of the
// link emulator.
const (
	RoleAgent    = "agent"
	RoleEmulator = "emulator"
)

// Mode is what the testbed can do on this machine. It is part of the record.
type Mode struct {
	Namespaces bool   `json:"namespaces"`
	Emulator   string `json:"emulator"`       // "netem", link.Own (and tbf for a rate alone) or "none"
	Real       bool   `json:"real,omitempty"` // links are those between machines: measured, never shaped
	Mesh       bool   `json:"mesh,omitempty"` // links are emulated between machines
	Why        string `json:"why,omitempty"`  // why links are not emulated, one sentence
}

// Testbed is a set of hosts with links between them.
// It is safe for concurrent use.
type Testbed struct {
	opt   Options
	self  string // this executable
	state *state
	net   *network // nil without namespaces
	hub   *host    // in the hub's namespace, for the emulator's process; nil without
	mode  Mode     // the same since New

	mu     sync.Mutex
	hosts  []*host
	apart  []*host           // those of Outside and OwnNetwork
	remote []Remote          // those of hosts that are behind an agent
	labels map[string]string // process label → the host it belongs to
	closed bool

	watched []*watched // servers of others that are part of the run

	starting sync.WaitGroup // processes that are being started

	shape     shaper
	mesh      mesh
	lastWords []record.Sample // of processes that have ended since the last poll

	polling sync.Mutex // one poll at a time: a counter that seems to fall is taken for a process that has ended
	box     box
}

// New makes an empty testbed, removing what dead runs left behind first. The
// caller must Close it. When plimsoll dies without that, a watchdog process
// ends the testbed's processes and removes its scratch directories; the
// kernel removes its namespaces, which nothing but our descriptors hold.
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
		t.log("removed what a dead run left: " + r)
	}
	if err != nil {
		t.log("cannot remove all that dead runs left: " + err.Error())
	}
	raiseFileLimit()
	if t.state, err = newState(t.self); err != nil {
		return nil, err
	}
	if err := t.choose(); err != nil {
		return nil, errors.Join(err, t.state.close())
	}
	return t, nil
}

// choose decides between namespaces and plain loopback, and opens the network.
func (t *Testbed) choose() (err error) {
	var missing []Problem
	t.mode, t.shape.ownWorks, missing = t.opt.emulation()
	t.mode.Mesh = t.opt.Mesh
	for _, p := range missing {
		if p.Blocking { // what was asked for
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
	t.shape.active = "none"
	t.shape.tbfWorks = sync.OnceValue(func() bool { return tbf && link.Works(link.TBFDiscipline) == nil })
	return nil
}

// Mode says what this testbed can do here.
func (t *Testbed) Mode() Mode { return t.mode }

// Self is the command that runs a subcommand of plimsoll.
func (t *Testbed) Self(args ...string) []string { return append([]string{t.self}, args...) }

// AddHost adds a host that every other host reaches. Hosts live as long as the
// testbed.
func (t *Testbed) AddHost(ctx context.Context, name string) (Host, error) {
	if t.opt.Hosts == nil {
		return t.LocalHost(ctx, name)
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

// LocalHost adds a host of this machine, whatever the options say of AddHost.
func (t *Testbed) LocalHost(ctx context.Context, name string) (Host, error) {
	return t.addLocal(ctx, name, 0)
}

// addLocal adds a host with a number, from which its addresses are; 0: the next.
func (t *Testbed) addLocal(ctx context.Context, name string, number int) (Host, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
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

// Outside adds a host on this machine's own network, from where systems that run
// elsewhere are reached. No link of it is shaped, and hosts with namespaces do not
// reach it.
func (t *Testbed) Outside(ctx context.Context, name string) (Host, error) {
	if t.net == nil && !t.opt.Real {
		return t.AddHost(ctx, name)
	}
	return t.OwnNetwork(name, netip.AddrFrom4([4]byte{127, 0, 0, 2}))
}

// OwnNetwork adds a host that is the network this process was started in, which others
// reach under an address: that of an agent.
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

// maxHosts keeps the last two bytes of an address free of overflow and of the
// broadcast address; a machine ends long before.
const maxHosts = 1000

// Logs is the directory for the logs of processes.
func (t *Testbed) Logs() string { return filepath.Join(t.opt.Dir, "logs") }

// Scratch makes a directory that is removed with the testbed, also when
// plimsoll is killed.
func (t *Testbed) Scratch(name string) (string, error) {
	dir, err := os.MkdirTemp(t.state.dir, sanitize(name)+"-")
	if err != nil {
		return "", fmt.Errorf("testbed: scratch directory: %w", err)
	}
	return dir, nil
}

// Close stops every process, removes links, hosts and scratch directories. It
// is idempotent; ctx bounds how long processes may take to stop before they
// are killed.
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

	var errs []error
	errs = append(errs, StopAll(ctx, processes(hosts...)))
	errs = append(errs, t.shape.close(ctx))
	for _, h := range hosts {
		errs = append(errs, h.close())
	}
	if t.net != nil {
		t.hub.keeper.stop()
		errs = append(errs, t.net.close())
	}
	errs = append(errs, t.state.close())
	return errors.Join(errs...)
}

// StopAll stops processes all at once: one that takes its time to end does not
// hold up the others.
func StopAll[P Process](ctx context.Context, procs []P) error {
	return atOnce(len(procs), func(i int) error { return procs[i].Stop(ctx) })
}

// atOnce does n things at once.
func atOnce(n int, do func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// processes of these hosts that were started and not yet stopped.
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

// raiseFileLimit lifts the soft limit of open files to the hard one, for us
// and, because it is set explicitly, for the processes we start: a thousand
// connections do not fit the customary 1024.
func raiseFileLimit() {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) == nil {
		r.Cur = r.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &r)
	}
}
