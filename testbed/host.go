// Package testbed gives a run its machines: hosts (network namespaces, or plain
// loopback addresses), the links between them, and the processes on them,
// started with deadlines, observed alike and removed afterwards, also after a
// crash of ours.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Host is a place that runs processes, holds files, and is reached by other hosts over
// a link. It may be on another machine: callers must not rely on this machine's /proc,
// files, process ids, CPUs or clock.
type Host interface {
	// Name is unique in its testbed.
	Name() string
	// Addr is the address under which every other host reaches this one.
	Addr() netip.Addr
	// Start starts a process on the host and waits until it is ready, it ends,
	// or the command's ready deadline passes. It fails when one of that name runs.
	Start(ctx context.Context, c Command) (Process, error)
	// Processes returns every process that was started on the host, ended ones included.
	Processes() []Process
	// Dial connects from this host; the connection crosses the host's link.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Respond answers the measurements of other hosts until stop is called.
	Respond(ctx context.Context) (at netip.AddrPort, stop func(), err error)
	// Measure measures the link from this host to one that responds; see [link.Measure].
	Measure(ctx context.Context, to netip.AddrPort, want link.Want, tol float64) (record.LinkCheck, error)
	// Port returns a TCP port that nothing listens on: the wanted one or, for 0, any
	// outside the range from which the kernel picks ports.
	Port(ctx context.Context, want int) (int, error)
	// Traffic returns the bytes that the host's interfaces have received and sent since
	// the host was created, headers included; NaN on a host without an interface of its own.
	Traffic() (rx, tx float64)
	Files() Files
	// Machine returns the computer that the host runs on. Hosts with equal machines share
	// all files outside the directories of deployments, such as caches.
	Machine() Machine
}

// Command is a process to start.
type Command struct {
	Name string   // unique on the host: "nginx/server"; names its log file
	Role string   // "system", "generator", "emulator"
	Args []string // Args[0] is the program; Self() for our own subcommands
	Env  []string // added to a minimal environment (PATH, HOME=Dir, TMPDIR=Dir, LANG=C)
	Dir  string   // working directory on the host; created if missing
	// Stdin and Stdout are owned by Start from the call on, even if it fails: the host
	// closes Stdin when the process has ended, and Stdout when all output has been copied.
	// A Stdin that is an *os.File on this machine is passed to the process directly. With a nil Stdout,
	// output goes to the log, like standard error. With a nil Stdin, the process reads from
	// a pipe that stays open while it lives (some daemons end when it closes, so they die
	// with us).
	Stdin  io.ReadCloser
	Stdout io.WriteCloser
	// Ready is polled until it returns nil; nil means ready once started.
	Ready        func(ctx context.Context) error
	ReadyTimeout time.Duration // 0: 30 s
	// StopTime is how long the process may take to end after SIGTERM, before SIGKILL; 0: 10 s. After three
	// quarters of it comes SIGQUIT: a Go daemon then logs its goroutines.
	StopTime time.Duration

	files []*os.File // inherited as descriptors 3, 4, …
}

// Process is a process on a host together with its descendants. It leads its own
// session and process group, so Ctrl-C at the terminal does not reach it, and a signal
// reaches the whole group. A Process is comparable.
type Process interface {
	// Name is the name of the process in samples: that of the command, prefixed with the
	// host's when another host has a process of the same name.
	Name() string
	Host() Host
	// ID is unique over the whole run.
	ID() ProcessID
	// LogPath is a file on this machine with the output of the process. Output from a
	// host elsewhere is copied to it continuously.
	LogPath() string
	// Done is closed when the process has ended or can no longer be reached.
	Done() <-chan struct{}
	// Err is nil while the process runs, after it was stopped, and after it ended with
	// status 0; otherwise it says how the process ended, with the tail of its log.
	Err() error
	// Signal sends a signal to the process's group.
	Signal(syscall.Signal) error
	// Stop ends the process and its descendants within the command's StopTime; when ctx
	// ends, it goes straight to SIGKILL. It returns nil once none of them is left. Later
	// calls wait for the first.
	Stop(ctx context.Context) error
	// Memory measures the process now. It walks page tables (milliseconds per gigabyte),
	// so it must not be called while something is timed.
	Memory() Memory
	// ResetPeak restarts [Memory.Peak] at the current resident set. Memory that the
	// process still holds from earlier work counts towards the next peak.
	ResetPeak() error
	// Peak is the largest resident set of the leader, in bytes, since it started or since
	// ResetPeak; after its end, over its life and the lives of the children that it waited
	// for. NaN where the kernel does not report it.
	Peak() float64
}

// ProcessID identifies a process over the whole run: kernels reuse process ids, and
// other machines have the same ones.
type ProcessID struct {
	Host  string
	PID   int
	Birth uint64 // the kernel's start time of PID, in clock ticks since boot
}

func (id ProcessID) String() string { return fmt.Sprintf("pid %d on host %s", id.PID, id.Host) }

// Memory is the memory of a process and its descendants, in bytes, summed over them.
// A number that the kernel does not report is NaN.
type Memory struct {
	RSS float64 // resident set: shared memory counts once per process
	// highest resident set of each (VmHWM) since its start or [Process.ResetPeak], not necessarily at the same moment
	Peak float64
}

// Files are the files of a host. A path is absolute and valid on its host only: hosts
// need not see each other's files, even on one machine. Errors are those of package os
// (errors.Is with fs.ErrNotExist). Values are comparable. Methods without a context
// have a deadline of their own.
type Files interface {
	MkdirAll(dir string, mode fs.FileMode) error
	// Write creates or replaces a file with the content of r, all of it or nothing. Until
	// it is complete, it lies in the same directory under a name that begins with a dot.
	// Missing parent directories are created.
	Write(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error
	ReadFile(path string) ([]byte, error)
	Open(path string) (io.ReadCloser, error)
	Rename(from, to string) error
	// RemoveAll removes a file, or a directory and its content; nil if it does not exist.
	RemoveAll(path string) error
	// Walk calls each for dir and everything below it, parents first, until each returns
	// an error. It follows no symbolic links. Entries that vanish meanwhile are skipped,
	// except dir itself.
	Walk(dir string, each func(Entry) error) error
	// SupportsXattrs reports whether files in dir can have user extended attributes.
	SupportsXattrs(dir string) bool
}

// Entry is a file, directory or other entry of a directory tree.
type Entry struct {
	Path          string // relative to the top; "." is the top itself
	Mode          fs.FileMode
	Size          int64
	Disk          int64 // bytes allocated on disk
	Device, Inode uint64
}

// Machine is a computer that one or more hosts run on. Numbers that its kernel does
// not report are NaN.
type Machine interface {
	// Name is unique among the machines of a run; it is empty for the engine's machine.
	Name() string
	CPUs() int
	// AvailableMemory returns how many bytes new processes can use before the machine
	// swaps or kills processes.
	AvailableMemory() (float64, error)
	// Filesystem returns the file system of an existing directory.
	Filesystem(dir string) (Filesystem, error)
	// RAMDisk creates a directory in memory for size bytes. It fails, without using memory,
	// if there is not enough. It is removed with the testbed, even if plimsoll is killed.
	RAMDisk(name string, size int64) (RAMDisk, error)
	// IOPressure returns the seconds since boot during which at least one task waited for
	// storage ("some" in /proc/pressure/io; see Documentation/accounting/psi.rst of Linux).
	IOPressure() float64
	// Problems reports what the machine lacks for a testbed with these options, without
	// changing anything. Load by other programs is checked by [Busy].
	Problems(Options) []Problem
	// Environment describes the machine and the settings of its hosts, as far as they
	// matter for judging results. It contains no secrets.
	Environment() map[string]string
}

// host is a network namespace on this machine, or, without namespaces, one
// address of the loopback interface.
type host struct {
	t      *Testbed
	name   string
	index  int
	addr   netip.Addr
	addrs  []netip.Addr // IPv4 and, where that is wanted, IPv6
	keeper *keeper
	ns     *os.File        // nil: plain
	nl     *netlink.Handle // nil: no interface of its own
	veth   netlink.Link

	mu      sync.Mutex
	procs   []*process // running ones
	started []Process  // all
}

// Name implements Host.
func (h *host) Name() string { return h.name }

// Addr implements Host.
func (h *host) Addr() netip.Addr { return h.addr }

// Files implements Host.
func (h *host) Files() Files { return LocalFiles{} }

// Machine implements Host.
func (h *host) Machine() Machine { return here{h.t} }

// Processes implements Host.
func (h *host) Processes() []Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.started)
}

// Dial connects from the host.
func (h *host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	// A socket belongs to the namespace it was created in. Each dial has its own
	// thread, so slow links do not delay other callers.
	c, err := inNamespace(h.ns, func() (net.Conn, error) { return d.DialContext(ctx, network, address) })
	if err != nil {
		return nil, fmt.Errorf("testbed: dial from host %s: %w", h.name, err)
	}
	return c, nil
}

// Listen listens on the host with TCP, at a numeric address.
func (h *host) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // Go's default since 1.24, but nothing else here uses it
	return inNamespace(h.ns, func() (net.Listener, error) { return lc.Listen(ctx, network, address) })
}

// ListenPacket listens on the host with UDP, at a numeric address.
func (h *host) ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	var lc net.ListenConfig
	return inNamespace(h.ns, func() (net.PacketConn, error) { return lc.ListenPacket(ctx, network, address) })
}

// Respond implements Host.
func (h *host) Respond(ctx context.Context) (at netip.AddrPort, stop func(), err error) {
	return link.Respond(ctx, h)
}

// Measure implements Host.
func (h *host) Measure(ctx context.Context, to netip.AddrPort, want link.Want, tol float64) (record.LinkCheck, error) {
	return link.Measure(ctx, h, to, want, tol)
}

// Port implements Host. Free ports lie below the kernel's ephemeral range (from 10000 on a
// host with a namespace, from 32768 elsewhere), so no outgoing connection or other listener
// takes the port before the daemon binds it.
func (h *host) Port(ctx context.Context, want int) (int, error) {
	const first, last, tries = 2048, 9999, 64
	for range tries {
		port := want
		if want == 0 {
			port = first + rand.IntN(last-first+1)
		}
		l, err := h.Listen(ctx, "tcp", netip.AddrPortFrom(h.addr, uint16(port)).String())
		if want == 0 && errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("testbed: host %s: %w", h.name, err)
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("testbed: no free port on host %s: each of %d tried between %d and %d is in use", h.name,
		tries, first, last)
}

func (h *host) close() error {
	h.keeper.stop()
	if h.nl != nil {
		h.nl.Close()
	}
	if h.ns != nil {
		return h.ns.Close()
	}
	return nil
}

// newNamespace creates a network namespace without a name. Only the returned descriptor
// holds it, so the kernel removes it when we die.
func newNamespace() (f *os.File, err error) {
	err = link.OnThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("unshare network namespace: %w", err)
		}
		f, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return f, err
}

// inNamespace runs f on its own thread inside ns, or directly if ns is nil.
func inNamespace[T any](ns *os.File, f func() (T, error)) (result T, err error) {
	if ns == nil {
		return f()
	}
	err = link.InNamespace(int(ns.Fd()), func() (err error) {
		result, err = f()
		return err
	})
	return result, err
}

// keeper is the OS thread of a host, which stays in the host's namespace while the host
// lives. Processes are forked from it: the kernel sends the parent-death signal when the
// forking THREAD ends, so it must outlive them.
type keeper struct {
	work chan func()
	quit chan struct{}
	done chan struct{}
}

var errHostClosed = errors.New("the host is closed")

func startKeeper(ns *os.File) *keeper {
	k := &keeper{work: make(chan func()), quit: make(chan struct{}), done: make(chan struct{})}
	link.StartThread(func() {
		defer close(k.done)
		if ns != nil && link.Enter(int(ns.Fd())) != nil { // impossible: we created it
			return
		}
		for {
			select {
			case f := <-k.work:
				f()
			case <-k.quit:
				return
			}
		}
	})
	return k
}

// do runs f on the thread. f must not block for long: everything on the host shares the
// thread.
func (k *keeper) do(f func() error) error {
	errc := make(chan error, 1)
	select {
	case k.work <- func() { errc <- f() }:
		return <-errc
	case <-k.done:
		return errHostClosed
	}
}

// stop ends the thread; later calls of do fail. It must be called only once.
func (k *keeper) stop() {
	close(k.quit)
	<-k.done
}
