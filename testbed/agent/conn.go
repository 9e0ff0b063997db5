package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// connected is what the agent says of a connection.
type connected struct {
	ID            int
	Local, Remote string
}

// held is a connection of the agent's. Two calls carry it, so that each half can end by
// itself: what comes is the answer of the one that opened it, what goes the body of send.
type held struct {
	net.Conn
	id    int
	taken atomic.Bool  // by a call
	ended atomic.Int32 // halves of it
}

// half ends a half of a connection, and with the second, or after an error, all of it.
func (s *server) half(c *held, err error) {
	if err == nil && c.ended.Add(1) < 2 {
		return
	}
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c.id)
}

// keep makes a connection known by a number.
func (s *server) keep(c net.Conn) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	h := &held{Conn: c, id: s.next}
	s.conns[h.id] = h
	return h
}

func (s *server) connection(id int) (*held, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.conns[id]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("agent: there is no connection %d: %w", id, net.ErrClosed)
}

// receive streams what comes, until the other side ends its half.
func (s *server) receive(_ context.Context, x *exchange, id int) {
	c, err := s.connection(id)
	if err != nil {
		_ = x.answer(none{}, err)
		return
	}
	c.taken.Store(true)
	if err = x.answer(connected{id, c.LocalAddr().String(), c.RemoteAddr().String()}, nil); err == nil {
		stop := context.AfterFunc(x.req, func() { _ = c.Close() }) // the caller is gone
		if _, err = io.Copy(x, c); err != nil && !errors.Is(err, net.ErrClosed) {
			x.fail(err)
		}
		stop()
	}
	s.half(c, err)
}

// send sends what the caller streams.
func (s *server) send(_ context.Context, x *exchange, id int) {
	c, err := s.connection(id)
	if x.answer(none{}, err) != nil || err != nil {
		return
	}
	if _, err = io.Copy(c, x.in); err == nil {
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	s.half(c, err)
}

// conn is a connection that the agent holds. Its halves are pipes, which know deadlines.
type conn struct {
	read, write   net.Conn
	local, remote net.Addr
	closed        sync.Once
	end           func()
	err           atomic.Pointer[error] // why the agent's side ended, if not with the end of the data
}

// dialCall is a connection to open, or a port to listen on.
type dialCall struct{ Network, Address string }

// connect makes a connection of two calls, the first of which opens it.
func (c *client) connect(ctx context.Context, path string, q any) (net.Conn, error) {
	var at connected
	from, err := c.open(ctx, path, q, &at, nil, nil)
	if err != nil {
		return nil, err
	}
	in, read := net.Pipe()
	write, out := net.Pipe()
	to, err := c.open(ctx, "/send", at.ID, &none{}, out, nil)
	if err != nil {
		from.end()
		return nil, err
	}
	k := &conn{read: read, write: write, local: address(at.Local), remote: address(at.Remote)}
	k.end = func() {
		from.end()
		to.end()
	}
	go func() {
		_, err := io.Copy(in, from)
		if errors.Is(err, io.ErrClosedPipe) { // closed here, and more comes
			k.end()
			return
		}
		if err != nil {
			k.err.Store(&err)
			_ = out.Close()
			k.end()
		}
		_ = in.Close()
	}()
	go func() {
		_, _ = io.Copy(io.Discard, to) // ends when all is sent
		_ = out.Close()
	}()
	return k, nil
}

func address(s string) net.Addr {
	a, _ := netip.ParseAddrPort(s)
	return net.TCPAddrFromAddrPort(a)
}

func (k *conn) Read(b []byte) (int, error) {
	n, err := k.read.Read(b)
	return n, k.why(err)
}

func (k *conn) Write(b []byte) (int, error) {
	n, err := k.write.Write(b)
	return n, k.why(err)
}

// why puts the agent's reason in the place of the pipe's.
func (k *conn) why(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if e := k.err.Load(); e != nil {
		return fmt.Errorf("through the agent: %w", *e)
	}
	return err
}

// CloseWrite ends our half.
func (k *conn) CloseWrite() error { return k.write.Close() }

// lingering is how long what was written has to get under way after Close, if nothing more
// comes meanwhile.
const lingering = 10 * time.Second

func (k *conn) Close() error {
	k.closed.Do(func() {
		_, _ = k.write.Close(), k.read.Close()
		time.AfterFunc(lingering, k.end)
	})
	return nil
}

func (k *conn) LocalAddr() net.Addr  { return k.local }
func (k *conn) RemoteAddr() net.Addr { return k.remote }

func (k *conn) SetReadDeadline(t time.Time) error  { return k.read.SetReadDeadline(t) }
func (k *conn) SetWriteDeadline(t time.Time) error { return k.write.SetWriteDeadline(t) }

func (k *conn) SetDeadline(t time.Time) error {
	return errors.Join(k.SetReadDeadline(t), k.SetWriteDeadline(t))
}

// listener accepts on the agent's host.
type listener struct {
	c       *client
	at      net.Addr
	release func() error // ends it there
	ids     chan int     // of accepted connections; closed when it has ended there
}

func (c *client) listen(ctx context.Context, network, addr string) (net.Listener, error) {
	var at string
	hold, release := io.Pipe()
	o, err := c.open(ctx, "/listen", dialCall{network, addr}, &at, hold, nil)
	if err != nil {
		return nil, err
	}
	l := &listener{c, address(at), release.Close, make(chan int, 1<<10)}
	go func() {
		defer o.end()
		defer close(l.ids)
		for {
			var id int
			if o.dec.Decode(&id) != nil {
				return
			}
			l.ids <- id
		}
	}()
	return l, nil
}

func (l *listener) Accept() (net.Conn, error) {
	id, ok := <-l.ids
	if !ok {
		return nil, fmt.Errorf("accept on %s of host %s: %w", l.at, l.c.name, net.ErrClosed)
	}
	return l.c.connect(context.Background(), "/receive", id)
}

// Close returns when nothing listens there any more.
func (l *listener) Close() error {
	_ = l.release()
	for range l.ids { // who was accepted and not fetched is let go by the agent
	}
	return nil
}

func (l *listener) Addr() net.Addr { return l.at }
