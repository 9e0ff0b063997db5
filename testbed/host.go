// Package testbed gives a run its machines: hosts (network namespaces, or plain
// loopback addresses), the links between them, and the processes on them,
// started with deadlines, observed alike and removed afterwards, also after a
// crash of ours.
package testbed

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Host is a place where processes run, files lie, and which other hosts reach over
// a link. It need not be on this machine: who uses a host assumes neither this
// machine's /proc nor its files, process ids, CPUs or clock.
type Host interface {
	// Name is unique in its testbed.
	Name() string
	// Addr is the address under which every other host reaches this one.
	Addr() netip.Addr
	// Start starts a process on the host and waits until it is ready, it ends,
	// or the command's ready deadline passes. It fails when one of that name runs.
	Start(ctx context.Context, c Command) (Process, error)
	// Processes are all that were started on the host, also those that have ended.
	Processes() []Process
	// Dial connects from this host; the connection crosses the host's link.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Respond lets other hosts measure the link to this one, until stop.
	Respond(ctx context.Context) (at netip.AddrPort, stop func(), err error)
	// Measure measures the link from this host to one that responds, see [link.Measure].
	Measure(ctx context.Context, to netip.AddrPort, want link.Want, tol float64) (record.LinkCheck, error)
	// Port returns a TCP port that nothing listened on a moment ago: the one wanted, or,
	// for 0, any that no program gets by leaving the choice to the kernel.
	Port(ctx context.Context, want int) (int, error)
	// Traffic is what the host's interfaces have received and sent, headers
	// included, in bytes since the host was made; NaN on a host that has no
	// interface of its own.
	Traffic() (rx, tx float64)
	Files() Files
	// Machine is what the host runs on: the same value for all hosts that share one, and
	// with it what lies outside of the directories of deployments, such as caches.
	Machine() Machine
}

// Command is a process to start.
type Command struct {
	Name string   // unique on the host: "nginx/server"; names its log file
	Role string   // "system", "generator", "emulator"
	Args []string // Args[0] is the program; Self() for our own subcommands
	Env  []string // added to a minimal environment (PATH, HOME=Dir, TMPDIR=Dir, LANG=C)
	Dir  string   // working directory, on the host; made when it is not there
	// Stdin, Stdout: what the process reads and writes. Start takes them over, also
	// when it fails: the host closes Stdin when the process has ended, and Stdout
	// when all has come that was written. An *os.File on this machine is handed to
	// the process itself. Nil Stdout goes to the log with standard error. Nil Stdin: a pipe
	// that stays open for the process's whole life (some daemons end when it closes, so
	// they die with us).
	Stdin  io.ReadCloser
	Stdout io.WriteCloser
	// Ready is polled until it returns nil; nil means ready once started.
	Ready        func(ctx context.Context) error
	ReadyTimeout time.Duration // 0: 30 s
	// Stop says how it is asked to end, in order; default SIGTERM after 0 s,
	// SIGQUIT after 5 s (a Go daemon leaves its goroutines in the log),
	// SIGKILL after 10 s.
	Stop []StopStep

	files []*os.File // its files from number 3 on
}

// StopStep is one step of the escalation: send Signal After the stop began.
type StopStep struct {
	Signal syscall.Signal
	After  time.Duration
}

// Process is a process on a host, together with all that it started. It leads a
// session and a process group of its own, so that a Ctrl-C at the terminal does not
// reach it and a signal reaches all of it. A Process is comparable.
type Process interface {
	// Name is the process's name in samples: the command's, with the host's in
	// front when another host has a process of that name.
	Name() string
	Host() Host
	// ID is no other process's, ever.
	ID() ProcessID
	// LogPath is a file on this machine with the process's output; that of a host
	// elsewhere is brought here while the process writes it.
	LogPath() string
	// Done is closed when the process has ended, or is out of reach for good.
	Done() <-chan struct{}
	// Err is nil while the process runs, and when it ended because it was stopped
	// or with status 0; else it says how it ended, with the end of its log.
	Err() error
	// Signal sends a signal to the process's group.
	Signal(syscall.Signal) error
	// Stop ends the process and all that it started: the steps of the command, or
	// SIGTERM, SIGQUIT, SIGKILL; when ctx ends it goes straight to SIGKILL. It
	// returns nil once nothing of it is left. Later calls wait for the first.
	Stop(ctx context.Context) error
	// Memory looks at the process now. It walks page tables (milliseconds for
	// gigabytes), so it has no place within what is timed.
	Memory() Memory
	// ResetPeak makes [Memory.Peak] begin anew at what is resident now. What the
	// process still holds from earlier work is resident: the next peak is never less
	// than that.
	ResetPeak() error
	// Peak is the largest resident set that the process's leader has had, in bytes,
	// since it began or ResetPeak; of one that has ended, over its life and that of the
	// children it has waited for. NaN where the kernel does not tell.
	Peak() float64
}

// ProcessID names a process for good: process ids are used again, and other machines
// use the same ones.
type ProcessID struct {
	Host  string
	PID   int
	Birth uint64 // the kernel's start time of PID, in clock ticks since boot
}

func (id ProcessID) String() string { return fmt.Sprintf("pid %d on host %s", id.PID, id.Host) }

// Memory is what a process and all that it started hold, in bytes, summed over
// them. A number that the kernel would not tell is NaN.
type Memory struct {
	RSS float64 // resident set: memory shared by several counts once for each
	PSS float64 // proportional set: what is shared is divided among those that share it
	// highest resident set of each (VmHWM) since it began or [Process.ResetPeak], not necessarily at the same moment
	Peak float64
}

// Files are a host's. A path is absolute, and means something on its host alone: two
// hosts need not see each other's files, even on one machine. Errors are those of
// package os (errors.Is with fs.ErrNotExist). Values are comparable. What moves no contents is bounded by the
// implementation, not by a context.
type Files interface {
	MkdirAll(dir string, mode fs.FileMode) error
	// Write makes a file of all that r has, or nothing; it replaces one of that name.
	// Until it is whole, its name in the same directory begins with a dot. Directories
	// above it are made.
	Write(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error
	ReadFile(path string) ([]byte, error)
	Open(path string) (io.ReadCloser, error)
	Rename(from, to string) error
	// RemoveAll removes a file, or a directory with all that is in it; nil when there
	// is none.
	RemoveAll(path string) error
	// Walk calls each with what is below dir, dir itself first, directories before what
	// is in them, until each fails. Symbolic links are not followed. What vanishes
	// meanwhile is left out, but for dir itself.
	Walk(dir string, each func(Entry) error) error
	// Attributes says whether files in dir can have extended attributes of the user's.
	Attributes(dir string) bool
}

// Entry is a file, directory or other in a directory tree.
type Entry struct {
	Path          string // relative to the top, "." is the top itself
	Mode          fs.FileMode
	Size          int64
	Disk          int64 // bytes of the blocks that it takes
	Device, Inode uint64
}

// Machine is a computer that hosts run on, one or more. Numbers that its kernel does
// not tell are NaN.
type Machine interface {
	// Name distinguishes the machines of a run; empty: the one that runs the engine.
	Name() string
	CPUs() int
	// AvailableMemory is how many bytes new processes can take before the machine
	// swaps or kills.
	AvailableMemory() (float64, error)
	// Filesystem is what a directory, which must exist, is on.
	Filesystem(dir string) (Filesystem, error)
	// RAMDisk makes a directory in memory for size bytes. It fails, without taking memory,
	// when there is not enough. It is removed with the testbed, also when plimsoll is killed.
	RAMDisk(name string, size int64) (RAMDisk, error)
	// IOPressure is for how many seconds since boot at least one task of the machine
	// waited for storage (the "some" of /proc/pressure/io: Documentation/accounting/psi.rst
	// of Linux).
	IOPressure() float64
	// Problems says what the machine lacks for a testbed with these options. It changes
	// nothing. See [Busy] for what it leaves out.
	Problems(Options) []Problem
	// Environment is what the machine and the settings of its hosts are: enough to
	// judge a number by, nothing secret.
	Environment() map[string]string
}
