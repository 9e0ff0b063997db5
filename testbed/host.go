// Package testbed gives a run its machines: hosts (network namespaces, or plain
// loopback addresses), the links between them, and the processes on them,
// started with deadlines, observed alike and removed afterwards, also after a
// crash of ours.
package testbed

import (
	"context"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Host is a place where processes run and which other hosts reach over a link.
// It is an interface so that a host need not be on this machine.
type Host interface {
	Name() string
	// Addr is the address under which every other host reaches this one.
	Addr() netip.Addr
	// Start starts a process on the host and waits until it is ready, it ends,
	// or the command's ready deadline passes.
	Start(ctx context.Context, c Command) (*Process, error)
	// Dial connects from this host; the connection crosses the host's link.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	// Listen listens on this host.
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	// Respond lets other hosts measure the link to this one, until stop.
	Respond(ctx context.Context) (at netip.AddrPort, stop func(), err error)
	// Measure measures the link from this host to one that responds, see [link.Measure].
	Measure(ctx context.Context, to netip.AddrPort, want link.Want, tol float64) (record.LinkCheck, error)
	// FreePort returns a TCP port that nothing listened on a moment ago.
	FreePort(ctx context.Context) (int, error)
}

// Command is a process to start.
type Command struct {
	Name string   // unique on the host: "nginx/server"; names its log file
	Role string   // "system", "generator", "emulator"
	Args []string // Args[0] is the program; Self() for our own subcommands
	Env  []string // added to a minimal environment (PATH, HOME=Dir, TMPDIR=Dir, LANG=C)
	Dir  string   // working directory
	// Stdin, Stdout: pipes the caller wants to hold; nil Stdout goes to the log
	// with Stderr. Stdin nil: a pipe we hold open for the process's whole life
	// (some daemons end when it closes, so they die with us).
	Stdin  *os.File
	Stdout *os.File
	// Ready is polled until it returns nil; nil means ready once started.
	Ready        func(ctx context.Context) error
	ReadyTimeout time.Duration // 0: 30 s
	// Stop says how it is asked to end, in order; default SIGTERM after 0 s,
	// SIGQUIT after 5 s (a Go daemon leaves its goroutines in the log),
	// SIGKILL after 10 s.
	Stop []StopStep
	// PSS: observe proportional set size too (costly: it walks the page tables).
	PSS bool
}

// StopStep is one step of the escalation: send Signal After the stop began.
type StopStep struct {
	Signal os.Signal
	After  time.Duration
}
