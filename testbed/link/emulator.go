package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/rpc"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Process is a running emulator process as seen by its launcher.
type Process interface {
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
	Threads int    // of the data path; 0: half the processors, 1 to 8
	Mesh    *Mesh  // nil: all hosts are on this machine
}

// memory limits the packets that an emulator holds, in bytes: five times what
// 10 Gbit/s × 80 ms and its queue need.
const memory = 1 << 30

// mostThreads limits the memory of their rings: more threads would hardly be faster.
const mostThreads = 8

// answerWithin is the default deadline of a call.
const answerWithin = 10 * time.Second

// Emulator is the client of a user-space emulator process, which it calls with net/rpc over
// a Unix socket, the standard input of the process. It is safe for concurrent use.
type Emulator struct {
	process Process
	client  *rpc.Client
	devices []Device
}

// New launches an emulator process between the ports of hosts on a hub, which must not be on a
// bridge, and waits until it is ready. No link is shaped yet. hub is a descriptor of the hub's
// network namespace. In a mesh, which works once all emulators have started, there is one host;
// carrier comes from OpenCarrier and stays the caller's.
func New(ctx context.Context, launch Launch, o Options, hub int, carrier *os.File, devices ...Device) (_ *Emulator,
	err error) {
	if o.Threads == 0 {
		o.Threads = min(max(runtime.NumCPU()/2, 1), mostThreads)
	}
	if o.Mesh != nil {
		o.Threads = 1
	}
	e, q := &Emulator{devices: devices}, Setup{Options: o}
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
	}
	err = InNamespace(hub, func() error {
		for range o.Threads {
			f, err := openSocket()
			if err != nil {
				return err
			}
			files = append(files, f)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("link: control socket: %w", err)
	}
	theirs, ours := os.NewFile(uintptr(fds[1]), "emulator"), os.NewFile(uintptr(fds[0]), "control")
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, fmt.Errorf("link: control socket: %w", err)
	}
	e.client = rpc.NewClient(conn)
	given := slices.Clone(files)
	if carrier != nil {
		given = append(given, carrier)
	}
	process, err := launch(ctx, theirs, given)
	if err != nil { // then there is no process to close
		return nil, fmt.Errorf("link: start the emulator: %w", err)
	}
	e.process = process
	theirs.Close() // we notice the end of the process only if no one else has this socket
	return e, e.call(ctx, "Start", q, new(bool))
}

// Err says how the emulator has ended; nil while it runs. After its end no packet passes
// between hosts.
func (e *Emulator) Err() error {
	select {
	case <-e.process.Done():
	default:
		return nil
	}
	return fmt.Errorf("link: the emulator died: %w", cmp.Or(e.process.Err(), errors.New("it ended with exit status 0")))
}

// call calls the emulator and waits for its answer.
func (e *Emulator) call(ctx context.Context, method string, question, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	call := e.client.Go("Emulator."+method, question, answer, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
	case <-ctx.Done():
		return fmt.Errorf("link: no answer from the emulator: %w", ctx.Err())
	}
	var said rpc.ServerError
	if call.Error == nil || errors.As(call.Error, &said) {
		return call.Error
	}
	select {
	case <-e.process.Done():
		return e.Err()
	case <-time.After(time.Second): // the socket closes an instant before the process is reaped
		return fmt.Errorf("link: control connection of the emulator: %w", call.Error)
	}
}

// Shape applies a topology, even under traffic: packets in flight keep their departure
// time, and no packet overtakes another. A connection learns the largest super-packet
// when it is opened.
func (e *Emulator) Shape(ctx context.Context, t Topology) error {
	if err := e.call(ctx, "Shape", t, new(bool)); err != nil {
		return fmt.Errorf("link: shape: %w", err)
	}
	for _, d := range e.devices {
		segs := segmentsPerBurst(t.slowest(d.Host))
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
	for _, d := range e.devices {
		s.Drops[DropUnread] += d.Ports.Up.dropped() + d.Ports.Down.dropped()
	}
	return s, nil
}

// Probe measures the round trips to the other emulators of the mesh, by their numbers; adopt
// subtracts half of each from the delay of packets from now on.
func (e *Emulator) Probe(ctx context.Context, adopt bool) (rtts []time.Duration, err error) {
	err = e.call(ctx, "Probe", adopt, &rtts)
	return rtts, err
}

// Close ends the emulator, and with it all traffic between hosts. It is idempotent.
func (e *Emulator) Close(ctx context.Context) error {
	if e.client != nil {
		e.client.Close()
	}
	if e.process == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return e.process.Stop(ctx)
}

// Own is the name of our emulator.
const Own = "user"

// Works tries an emulator (Own, NetemDiscipline or TBFDiscipline) in a temporary network namespace
// and returns why it does not work here. It needs the same rights as the emulators: root, or root
// of a user namespace.
func Works(emulator string) error {
	return OnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"}, PeerName: "b"}
		if err := netlink.LinkAdd(veth); err != nil {
			return fmt.Errorf("make a veth pair: %w", err)
		}
		if emulator == Own {
			f, err := openSocket()
			if err != nil {
				return err
			}
			defer f.Close()
			s, err := newPacketSocket(int(f.Fd()), 0, 2)
			if err != nil {
				return err
			}
			return unix.Munmap(s.ring)
		}
		dev, err := netlink.LinkByName("a")
		if err != nil {
			return err
		}
		// This loads the discipline's module if the kernel allows it.
		p := Params{Rate: 1e9, Queue: 1 << 20}
		if err := (Port{Device: "a", NL: &netlink.Handle{}}).discipline(dev, emulator, p, 1, 0); err != nil {
			return fmt.Errorf("the kernel has no %s (module sch_%s): %w", emulator, emulator, err)
		}
		return nil
	})
}

// Serve is the emulator process, `plimsoll node link`: it serves the client on the socket
// that is its standard input, until that closes or ctx ends. It needs no rights over any
// namespace: it inherits its packet sockets as descriptors 3, 4, ….
func Serve(ctx context.Context, _ []string) error {
	control, err := net.FileConn(os.NewFile(0, "stdin"))
	if err != nil {
		return fmt.Errorf("link: standard input must be the socket of a plimsoll that started this emulator: %w", err)
	}
	defer context.AfterFunc(ctx, func() { control.Close() })()
	s, server := &service{}, rpc.NewServer()
	if err := server.RegisterName("Emulator", s); err != nil {
		return fmt.Errorf("link: %w", err)
	}
	server.ServeConn(control) // until it is closed
	for _, l := range s.loops {
		l.stop()
	}
	return nil
}

// Setup configures an emulator process. The packet socket of thread i is descriptor 3 + i. In a
// mesh there is one thread and one host, and the next descriptor is the socket between machines.
type Setup struct {
	Options Options
	Hosts   []Attached
}

// Attached is a host and the number of its device.
type Attached struct {
	Host   string
	Addrs  []netip.Addr
	Device int
}

// service implements the calls to an emulator process.
type service struct {
	mu    sync.Mutex // one call at a time
	loops []*loop
}

// Start starts the data path.
func (s *service) Start(q Setup, _ *bool) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The data path must neither wait for a Go processor while a call is answered, nor
	// for the garbage collector. Packets are outside its heap, and the garbage of the few
	// calls of a run may accumulate.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), q.Options.Threads+2))
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)
	const first = 3
	loops, err := newLoops(q.Options, first)
	if err != nil {
		return fmt.Errorf("link: start the data path: %w", err)
	}
	for _, l := range loops {
		if err := l.attach(q, first+len(loops)); err != nil {
			return fmt.Errorf("link: join the mesh: %w", err)
		}
	}
	for _, l := range loops {
		go l.run()
	}
	s.loops = loops
	return nil
}

// Shape applies a topology.
func (s *service) Shape(t Topology, _ *bool) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.loops {
		err = errors.Join(err, l.do(func() { l.net.reshape(t) }))
	}
	return err
}

// Stats returns the combined statistics of all threads.
func (s *service) Stats(_ bool, sum *Stats) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.loops {
		one, e := l.stats()
		*sum, err = sum.Merge(one), errors.Join(err, e)
	}
	return err
}
