package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a running emulator process, as whoever launched it sees it.
type Process interface {
	PID() int
	Done() <-chan struct{} // closed when it has ended
	Err() error            // why, once Done is closed
	Stop(ctx context.Context) error
}

// Launch starts Serve as a process with the given file as its standard input and the
// sockets as its files from number 3 on. The files stay the caller's.
type Launch func(ctx context.Context, stdin *os.File, sockets []*os.File) (Process, error)

// Options of an emulator.
type Options struct {
	Seed    uint64 // of losses and jitter
	Memory  int64  // bytes that packets under way may occupy; 0: DefaultMemory
	Threads int    // of the data path; 0: half the processors, 1 to 8
}

// DefaultMemory bounds what an emulator holds: enough for 10 Gbit/s × 80 ms with
// its queue, five times over.
const DefaultMemory = 1 << 30

// mostThreads bounds what their rings occupy: more would hardly be faster.
const mostThreads = 8

// answerWithin is the deadline of every request that has none of its own.
const answerWithin = 10 * time.Second

// Emulator is the client of a user-space emulator process, which it calls by net/rpc over
// a Unix socket, the process's standard input. Its methods may be called from several
// goroutines.
type Emulator struct {
	process Process
	conn    net.Conn
	client  *rpc.Client

	devices []Device
	names   []string // of all hosts, also those on other machines

	mu     sync.Mutex // guards what follows
	closed bool
}

// New launches an emulator process between the ports of hosts on a hub, which must not be
// joined by a bridge, and waits until it is ready. No link is shaped yet. The descriptor is
// of the hub's network namespace.
func New(ctx context.Context, launch Launch, o Options, hub int, devices ...Device) (*Emulator, error) {
	return newEmulator(ctx, launch, Setup{Options: o}, nil, hub, devices)
}

// NewMesh is New for the one host of this machine in a mesh, which begins when all
// emulators have started. The socket is of OpenCarrier, and stays the caller's.
func NewMesh(ctx context.Context, launch Launch, o Options, m Mesh, socket *os.File, hub int, d Device) (*Emulator,
	error) {
	o.Threads = 1
	m.Peers = slices.Clone(m.Peers)
	for i := range m.Peers {
		m.Peers[i].Size = carrySize(m.Peers[i].At)
	}
	return newEmulator(ctx, launch, Setup{Options: o, Mesh: &m}, socket, hub, []Device{d})
}

func newEmulator(ctx context.Context, launch Launch, q Setup, carrier *os.File, hub int,
	devices []Device) (_ *Emulator, err error) {
	e := &Emulator{devices: devices}
	if q.Options.Memory == 0 {
		q.Options.Memory = DefaultMemory
	}
	if q.Options.Threads == 0 {
		q.Options.Threads = min(max(runtime.NumCPU()/2, 1), mostThreads)
	}
	var files []*os.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
		if err != nil {
			err = errors.Join(err, e.Close(context.WithoutCancel(ctx)))
		}
	}()
	for _, d := range devices {
		port, err := d.Ports.Down.NL.LinkByName(d.Ports.Down.Device)
		if err != nil {
			return nil, fmt.Errorf("link: find the port of %s: %w", d.Host, err)
		}
		q.Hosts = append(q.Hosts, Attached{d.Host, d.Addrs, port.Attrs().Index})
		e.names = append(e.names, d.Host)
	}
	for range q.Options.Threads {
		err := InNamespace(hub, func() error {
			f, err := openSocket()
			files = append(files, f)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("link: control socket: %w", err)
	}
	theirs, ours := os.NewFile(uintptr(fds[1]), "emulator"), os.NewFile(uintptr(fds[0]), "control")
	defer theirs.Close()
	e.conn, err = net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, fmt.Errorf("link: control socket: %w", err)
	}
	e.client = rpc.NewClient(e.conn)
	given := files
	if q.Mesh != nil {
		given = append(slices.Clone(files), carrier)
		for _, p := range q.Mesh.Peers {
			e.names = append(e.names, p.Host)
		}
	}
	if e.process, err = launch(ctx, theirs, given); err != nil {
		return nil, fmt.Errorf("link: start the emulator: %w", err)
	}
	theirs.Close() // its end is noticed only when no one else has the socket
	return e, e.call(ctx, "Start", q, new(bool))
}

// Process is the emulator's process, for the observer.
func (e *Emulator) Process() Process { return e.process }

// Err says how the emulator has ended, after which no packet passes between hosts; nil
// while it runs.
func (e *Emulator) Err() error {
	select {
	case <-e.process.Done():
	default:
		return nil
	}
	if err := e.process.Err(); err != nil {
		return fmt.Errorf("link: the emulator (process %d) died: %w", e.process.PID(), err)
	}
	return fmt.Errorf("link: the emulator (process %d) ended", e.process.PID())
}

// call asks the emulator and waits for its answer.
func (e *Emulator) call(ctx context.Context, method string, question, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	e.conn.SetWriteDeadline(time.Now().Add(answerWithin))
	call := e.client.Go("Emulator."+method, question, answer, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-ctx.Done():
		return fmt.Errorf("link: no answer from the emulator (process %d): %w", e.process.PID(), ctx.Err())
	}
	var said rpc.ServerError
	if call.Error == nil || errors.As(call.Error, &said) {
		return call.Error
	}
	select {
	case <-e.process.Done():
		return e.Err()
	case <-time.After(time.Second): // the socket closes an instant before the process is reaped
		return fmt.Errorf("link: control connection of the emulator (process %d): %w", e.process.PID(), call.Error)
	}
}

// Shape applies a topology, also while traffic passes: packets under way keep
// their departure and no packet overtakes another.
func (e *Emulator) Shape(ctx context.Context, t Topology) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if err := e.call(ctx, "Shape", t, new(bool)); err != nil {
		return fmt.Errorf("link: shape: %w", err)
	}
	return e.limitBursts(t)
}

// limitBursts sets how large a super-packet of each host's device may be. A
// connection takes the limit over when it is made.
func (e *Emulator) limitBursts(t Topology) error {
	for _, d := range e.devices {
		rate := t.Up[d.Host].Rate
		for k, p := range t.Pairs {
			if k[0] == d.Host {
				rate = least(rate, p.Rate)
			}
		}
		for _, other := range e.names {
			if other != d.Host {
				rate = least(rate, t.Down[other].Rate)
			}
		}
		segs := segmentsPerBurst(rate)
		if oldKernel() {
			segs = 1
		}
		if err := d.Ports.Up.limitBursts(segs); err != nil {
			return fmt.Errorf("link: limit super-packets of %s: %w", d.Host, err)
		}
	}
	return nil
}

// oldKernel: before Linux 6.2 packet sockets drop super-packets of datagrams.
var oldKernel = sync.OnceValue(func() bool {
	var name unix.Utsname
	var major, minor int
	_ = unix.Uname(&name)
	_, _ = fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor)
	return major < 6 || major == 6 && minor < 2
})

// Stats returns what the emulator has done since it started.
func (e *Emulator) Stats(ctx context.Context) (s Stats, err error) {
	if err := e.call(ctx, "Stats", false, &s); err != nil {
		return Stats{}, err
	}
	unread := s.Drops[DropUnread]
	for _, d := range e.devices {
		unread.Segments += d.Ports.Up.dropped() + d.Ports.Down.dropped()
	}
	s.Drops[DropUnread] = unread
	return s, nil
}

// Close ends the emulator, and with it all traffic between hosts. It may be called again.
func (e *Emulator) Close(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	if e.client != nil {
		e.client.Close() // it ends when its standard input does
	}
	if e.process == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	select {
	case <-e.process.Done():
		return nil
	case <-time.After(3 * time.Second):
		return e.process.Stop(ctx)
	}
}
