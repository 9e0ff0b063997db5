package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// ServeTUN is the emulator process, `plimsoll node link`: it serves the client
// whose socket is its standard input until that closes or ctx ends. It needs no
// rights over any namespace; descriptors of the TUN devices are sent to it.
func ServeTUN(ctx context.Context, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("link: unexpected argument %q: the emulator is configured over its standard input", args[0])
	}
	return serve(ctx, os.NewFile(0, "stdin"))
}

func serve(ctx context.Context, control *os.File) error {
	ch, err := newChannel(control)
	if err != nil {
		return fmt.Errorf("link: standard input must be the socket of a plimsoll that started this emulator: %w", err)
	}
	defer ch.close()
	defer context.AfterFunc(ctx, func() { ch.conn.Close() })()
	var req request
	if err := ch.receive(&req); err != nil {
		return ended(ctx, err)
	}
	if req.Start == nil {
		return errors.New("link: the first request must be start")
	}
	// The data path must not wait for a processor of Go's while the control
	// goroutine runs, nor for the garbage collector: packets are not garbage, and
	// the few requests of a run may pile up.
	threads := max(req.Start.Threads, 1)
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), threads+2))
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)
	loops, err := newLoops(req.Start.Seed, req.Start.Memory, threads)
	if err != nil {
		return fmt.Errorf("link: start the data path: %w", err)
	}
	for _, l := range loops {
		go l.run()
		defer l.close() // after the last has stopped
	}
	defer func() {
		for _, l := range loops {
			l.stop()
		}
	}()
	for {
		r := reply{ID: req.ID}
		if err := answer(loops, ch, &req, &r); err != nil {
			r.Error = err.Error()
		}
		if err := ch.send(r, -1); err != nil {
			return ended(ctx, err)
		}
		req = request{}
		if err := ch.receive(&req); err != nil {
			return ended(ctx, err)
		}
	}
}

// ended distinguishes the end of the connection, which is how an emulator is
// stopped, from a failure.
func ended(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) || ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("link: control connection: %w", err)
}

func answer(loops []*loop, ch *channel, req *request, r *reply) error {
	switch {
	case req.Add != nil:
		fd, err := ch.claim()
		if err != nil {
			return err
		}
		return addHost(loops, req.Add.Name, req.Add.Addrs, fd)
	case req.Shape != nil:
		t := topologyOf(*req.Shape)
		for _, l := range loops {
			if err := l.do(func() { l.net.reshape(t) }); err != nil {
				return err
			}
		}
	case req.Stats:
		s, err := allStats(loops)
		r.Stats = &s
		return err
	}
	return nil // start: nothing more to do
}
