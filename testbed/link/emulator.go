package link

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
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

// Launch starts ServeTUN as a process with the given file as its standard input.
// The file stays the caller's: NewTUN closes it.
type Launch func(ctx context.Context, stdin *os.File) (Process, error)

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

// Emulator is the client of a user-space emulator process. Its methods may be
// called from several goroutines.
type Emulator struct {
	process Process
	ch      *channel
	lost    chan struct{} // closed when the connection is
	closed  chan struct{} // closed by Close

	mu      sync.Mutex // one request at a time; guards what follows
	id      int64
	hosts   map[string]*emulated
	shape   Topology
	err     error
	replies chan reply
}

// emulated is a host's device, for what is done from the outside.
type emulated struct {
	device string
	nl     *netlink.Handle
	segs   int // of a super-packet, at most, as it was set; 0: not yet
}

// NewTUN launches an emulator process and waits until it is ready.
func NewTUN(ctx context.Context, launch Launch, o Options) (*Emulator, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("link: control socket: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "emulator")
	ours := os.NewFile(uintptr(fds[0]), "control")
	ch, err := newChannel(ours)
	ours.Close()
	if err != nil {
		theirs.Close()
		return nil, fmt.Errorf("link: control socket: %w", err)
	}
	p, err := launch(ctx, theirs)
	theirs.Close()
	if err != nil {
		ch.close()
		return nil, fmt.Errorf("link: start the emulator: %w", err)
	}
	e := &Emulator{process: p, ch: ch, lost: make(chan struct{}), closed: make(chan struct{}), hosts: map[string]*emulated{}, replies: make(chan reply, 1)}
	go e.read()
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	if o.Threads == 0 {
		o.Threads = max(runtime.NumCPU()/2, 1)
	}
	if _, err := e.call(ctx, request{Start: &startArgs{o.Seed, o.Memory, o.Threads}}, -1); err != nil {
		e.Close(context.WithoutCancel(ctx))
		return nil, err
	}
	return e, nil
}

func (e *Emulator) read() {
	defer close(e.lost)
	for {
		var r reply
		if e.ch.receive(&r) != nil {
			return
		}
		select {
		case e.replies <- r:
		case <-e.closed:
			return
		}
	}
}

// Process is the emulator's process, for the observer.
func (e *Emulator) Process() Process { return e.process }

// Done is closed when the emulator has ended or can no longer be reached: from
// then on no packet passes between hosts.
func (e *Emulator) Done() <-chan struct{} { return e.lost }

// Err says why Done is closed; nil while it is not.
func (e *Emulator) Err() error {
	select {
	case <-e.lost:
	default:
		return nil
	}
	// The socket closes an instant before the process is reaped.
	select {
	case <-e.process.Done():
		if err := e.process.Err(); err != nil {
			return fmt.Errorf("link: the emulator (process %d) died: %w", e.process.PID(), err)
		}
	case <-time.After(time.Second):
	}
	return fmt.Errorf("link: the emulator (process %d) ended", e.process.PID())
}

// call sends one request and waits for its reply.
func (e *Emulator) call(ctx context.Context, r request, fd int) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return reply{}, e.err
	}
	e.id++
	r.ID = e.id
	if err := e.ch.send(r, fd); err != nil {
		return reply{}, e.because(err)
	}
	for {
		select {
		case a := <-e.replies:
			switch {
			case a.ID != r.ID: // of a call that gave up waiting
			case a.Error != "":
				return a, errors.New(a.Error)
			default:
				return a, nil
			}
		case <-e.lost:
			return reply{}, e.because(nil)
		case <-ctx.Done():
			return reply{}, fmt.Errorf("link: no answer from the emulator (process %d): %w", e.process.PID(), ctx.Err())
		}
	}
}

func (e *Emulator) because(err error) error {
	select {
	case <-e.lost:
		return e.Err()
	case <-time.After(time.Second):
		return fmt.Errorf("link: control connection of the emulator: %w", err)
	}
}

// AddHost makes the device of a host inside its namespace and connects it. The
// host is shaped as the last topology says.
func (e *Emulator) AddHost(ctx context.Context, name string, d Device) error {
	if d.Name == "" {
		d.Name = DefaultDevice
	}
	fd, nl, err := openTUN(d)
	if err != nil {
		return err
	}
	defer unix.Close(fd) // the emulator has its own; the device must die with it
	addrs := make([]netip.Addr, len(d.Addrs))
	for i, a := range d.Addrs {
		addrs[i] = a.Addr()
	}
	if _, err := e.call(ctx, request{Add: &addArgs{name, addrs}}, fd); err != nil {
		nl.Close()
		return fmt.Errorf("link: add host %s: %w", name, err)
	}
	e.mu.Lock()
	e.hosts[name] = &emulated{device: d.Name, nl: nl}
	shape := e.shape
	e.mu.Unlock()
	return e.limitBursts(shape)
}

// Shape applies a topology, also while traffic passes: packets under way keep
// their departure and no packet overtakes another.
func (e *Emulator) Shape(ctx context.Context, t Topology) error {
	if err := t.Validate(); err != nil {
		return err
	}
	edges := t.edges()
	if _, err := e.call(ctx, request{Shape: &edges}, -1); err != nil {
		return fmt.Errorf("link: shape: %w", err)
	}
	e.mu.Lock()
	e.shape = t
	e.mu.Unlock()
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
		for other := range e.hosts {
			if other != name {
				rate = least(rate, t.Down[other].Rate)
			}
		}
		segs := segmentsPerBurst(rate)
		if segs == h.segs {
			continue
		}
		dev, err := h.nl.LinkByName(h.device)
		if err == nil {
			err = h.nl.LinkSetGSOMaxSegs(dev, segs)
		}
		if err != nil {
			return fmt.Errorf("link: limit super-packets of %s on %s: %w", h.device, name, err)
		}
		h.segs = segs
	}
	return nil
}

// Stats returns what the emulator has done since it started.
func (e *Emulator) Stats(ctx context.Context) (Stats, error) {
	a, err := e.call(ctx, request{Stats: true}, -1)
	if err != nil {
		return Stats{}, err
	}
	if a.Stats == nil {
		return Stats{}, errors.New("link: the emulator answered without statistics")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, h := range e.hosts {
		if dev, err := h.nl.LinkByName(h.device); err == nil && dev.Attrs().Statistics != nil {
			s := a.Stats.Hosts[name]
			s.DeviceDrops = int64(dev.Attrs().Statistics.TxDropped)
			a.Stats.Hosts[name] = s
		}
	}
	return *a.Stats, nil
}

// Close ends the emulator and the hosts' devices with it. It may be called again.
func (e *Emulator) Close(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return nil
	}
	e.err = errors.New("link: the emulator was closed")
	close(e.closed)
	e.ch.conn.Close() // it ends when its standard input does
	for _, h := range e.hosts {
		h.nl.Close()
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
