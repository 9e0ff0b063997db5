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

	"golang.org/x/sys/unix"
)

// ServeTUN is the emulator process, `plimsoll node link`: it serves the client
// whose socket is its standard input until that closes or ctx ends. It needs no
// rights over any namespace; the TUN devices are its files from number 3 on.
func ServeTUN(ctx context.Context, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("link: unexpected argument %q: the emulator is configured over its standard input", args[0])
	}
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
	for _, l := range s.loops { // after the last has stopped
		l.close()
	}
	return nil
}

// Setup is what an emulator process begins with. Device i is its file 3 + i. In a mesh there is
// one, and the socket is the file after it.
type Setup struct {
	Options Options
	Devices []Device
	Mesh    *Mesh
}

// service is what an emulator process answers.
type service struct {
	mu    sync.Mutex // one call at a time
	loops []*loop
}

// Start starts the data path.
func (s *service) Start(q Setup, _ *bool) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// The data path must not wait for a processor of Go's while a call is answered, nor
	// for the garbage collector: packets are not garbage, and the few calls of a run may
	// pile up.
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), q.Options.Threads+2))
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)
	if s.loops != nil {
		return errors.New("link: the data path has been started already")
	}
	loops, err := newLoops(q.Options)
	if err != nil {
		return fmt.Errorf("link: start the data path: %w", err)
	}
	const first = 3
	for i, d := range q.Devices {
		err := unix.SetNonblock(first+i, true)
		if q.Mesh != nil {
			err = errors.Join(err, loops[0].addPeers(q.Mesh, first, first+1))
		} else {
			addrs := make([]netip.Addr, len(d.Addrs))
			for i, a := range d.Addrs {
				addrs[i] = a.Addr()
			}
			err = errors.Join(err, addHost(loops, d.Host, addrs, first+i))
		}
		if err != nil {
			return fmt.Errorf("link: device of %s: %w", d.Host, err)
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

// Stats is what all threads have done together.
func (s *service) Stats(_ bool, sum *Stats) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*sum, err = allStats(s.loops)
	return err
}
