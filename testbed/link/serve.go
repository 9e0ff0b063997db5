package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/rpc"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

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
