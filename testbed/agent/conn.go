package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// dialCall is a connection to open.
type dialCall struct{ Network, Address string }

// connected is what the agent says of a connection.
type connected struct{ Local, Remote string }

// dial opens a connection, which lives as long as the call: what comes is streamed after the
// answer, what the caller streams is sent.
func (s *server) dial(ctx context.Context, x *exchange, q dialCall) {
	if !strings.HasPrefix(q.Network, "tcp") {
		err := fmt.Errorf("agent: dial %s: %w: only TCP passes through an agent", q.Network, errors.ErrUnsupported)
		_ = x.answer(connected{}, err)
		return
	}
	c, err := s.host.Dial(ctx, q.Network, q.Address)
	if err != nil {
		_ = x.answer(connected{}, err)
		return
	}
	defer c.Close()
	defer context.AfterFunc(x.req, func() { _ = c.Close() })() // the caller is gone
	if x.answer(connected{c.LocalAddr().String(), c.RemoteAddr().String()}, nil) != nil {
		return
	}
	go func() {
		if _, err := io.Copy(c, x.in); err != nil {
			return
		}
		if half, ok := c.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	if _, err := io.Copy(x, c); err != nil && !errors.Is(err, net.ErrClosed) {
		x.fail(err)
	}
}

// conn is a connection that the agent holds. Its halves are pipes, which know deadlines.
type conn struct {
	read, write   net.Conn
	local, remote net.Addr
	closed        sync.Once
	end           func()
	err           atomic.Pointer[error] // why the agent's side ended, if not with the end of the data
}

// Dial implements testbed.Host. Only TCP passes through an agent.
func (h *Host) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var at connected
	in, read := net.Pipe()
	write, out := net.Pipe()
	from, err := h.open(ctx, "/dial", dialCall{network, addr}, &at, out, nil)
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	k := &conn{read: read, write: write, local: address(at.Local), remote: address(at.Remote), end: from.end}
	go func() {
		_, err := io.Copy(in, from)
		if err != nil && !errors.Is(err, io.ErrClosedPipe) { // else it was closed here, and more comes
			k.err.Store(&err)
		}
		_, _ = in.Close(), out.Close()
		if err != nil {
			k.end()
		}
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
