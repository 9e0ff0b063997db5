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

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Process is a running emulator process, as whoever launched it sees it.
type Process interface {
	PID() int
	Done() <-chan struct{} // closed when it has ended
	Err() error            // why, once Done is closed
	Stop(ctx context.Context) error
}

// Launch starts ServeTUN as a process with the given file as its standard input and the
// devices as its files from number 3 on. The files stay the caller's: NewTUN closes them.
type Launch func(ctx context.Context, stdin *os.File, devices []*os.File) (Process, error)

// Options of an emulator.
type Options struct {
	Seed    uint64 // of losses and jitter
	Memory  int64  // bytes that packets under way may occupy; 0: DefaultMemory
	Threads int    // of the data path; 0: half the processors, at least one
}

// DefaultMemory bounds what an emulator holds: enough for 10 Gbit/s × 80 ms with
// its queue, five times over.
const DefaultMemory = 1 << 30

// answerWithin is the deadline of every request that has none of its own.
const answerWithin = 10 * time.Second

// Emulator is the client of a user-space emulator process, which it calls by net/rpc over
// a Unix socket, the process's standard input. Its methods may be called from several
// goroutines.
type Emulator struct {
	process Process
	conn    net.Conn
	client  *rpc.Client

	mu     sync.Mutex // guards what follows
	hosts  map[string]*emulated
	names  []string // of all hosts, also those on other machines
	closed bool
}

// emulated is a host's device, for what is done from the outside.
type emulated struct {
	nl   *netlink.Handle
	segs int // of a super-packet, at most, as it was set; 0: not yet
}

// NewTUN makes a device inside the namespace of each host, launches an emulator process
// with these and waits until it is ready. No link is shaped yet.
func NewTUN(ctx context.Context, launch Launch, o Options, devices ...Device) (*Emulator, error) {
	return newEmulator(ctx, launch, Setup{Options: o, Devices: devices}, nil)
}

// NewMesh is NewTUN for the one host of this machine in a mesh, which begins when all
// emulators have started. The socket is of OpenCarrier, and stays the caller's.
func NewMesh(ctx context.Context, launch Launch, o Options, m Mesh, socket *os.File, device Device) (*Emulator, error) {
	o.Threads = 1
	m.Peers = slices.Clone(m.Peers)
	for i := range m.Peers {
		m.Peers[i].Size = carrySize(m.Peers[i].At)
	}
	return newEmulator(ctx, launch, Setup{o, []Device{device}, &m}, socket)
}

func newEmulator(ctx context.Context, launch Launch, q Setup, socket *os.File) (_ *Emulator, err error) {
	e := &Emulator{hosts: map[string]*emulated{}}
	var files []*os.File
	defer func() {
		for _, f := range files { // the emulator has its own; the devices must die with it
			f.Close()
		}
		if err != nil {
			err = errors.Join(err, e.Close(context.WithoutCancel(ctx)))
		}
	}()
	for _, d := range q.Devices {
		fd, nl, err := openTUN(d)
		if err != nil {
			return nil, err
		}
		files = append(files, os.NewFile(uintptr(fd), d.Host))
		e.hosts[d.Host] = &emulated{nl: nl}
		e.names = append(e.names, d.Host)
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
	if socket != nil {
		given = append(slices.Clone(files), socket)
		for _, p := range q.Mesh.Peers {
			e.names = append(e.names, p.Host)
		}
	}
	if e.process, err = launch(ctx, theirs, given); err != nil {
		return nil, fmt.Errorf("link: start the emulator: %w", err)
	}
	theirs.Close() // its end is noticed only when no one else has the socket
	if q.Options.Memory == 0 {
		q.Options.Memory = DefaultMemory
	}
	if q.Options.Threads == 0 {
		q.Options.Threads = max(runtime.NumCPU()/2, 1)
	}
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
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, h := range e.hosts {
		rate := t.Up[name].Rate
		for k, p := range t.Pairs {
			if k[0] == name {
				rate = least(rate, p.Rate)
			}
		}
		for _, other := range e.names {
			if other != name {
				rate = least(rate, t.Down[other].Rate)
			}
		}
		segs := segmentsPerBurst(rate)
		if segs == h.segs {
			continue
		}
		dev, err := h.nl.LinkByName(DefaultDevice)
		if err == nil {
			err = h.nl.LinkSetGSOMaxSegs(dev, segs)
		}
		if err != nil {
			return fmt.Errorf("link: limit super-packets of %s on %s: %w", DefaultDevice, name, err)
		}
		h.segs = segs
	}
	return nil
}

// Stats returns what the emulator has done since it started.
func (e *Emulator) Stats(ctx context.Context) (s Stats, err error) {
	if err := e.call(ctx, "Stats", false, &s); err != nil {
		return Stats{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, h := range e.hosts {
		if dev, err := h.nl.LinkByName(DefaultDevice); err == nil && dev.Attrs().Statistics != nil {
			of := s.Hosts[name]
			of.DeviceDrops = int64(dev.Attrs().Statistics.TxDropped)
			s.Hosts[name] = of
		}
	}
	return s, nil
}

// Close ends the emulator and the hosts' devices with it. It may be called again.
func (e *Emulator) Close(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	for _, h := range e.hosts {
		h.nl.Close()
	}
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
