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
	"sync/atomic"
	"time"
)

// dialCall is a connection to open.
type dialCall struct{ Network, Address string }

// connected is what the agent says of a connection.
type connected struct{ Local, Remote netip.AddrPort }

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
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // the caller is gone
	local, remote := c.LocalAddr().(*net.TCPAddr), c.RemoteAddr().(*net.TCPAddr)
	if x.answer(connected{local.AddrPort(), remote.AddrPort()}, nil) != nil {
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

// conn is a connection that the agent holds: our end of a pipe, which knows deadlines.
type conn struct {
	net.Conn
	local, remote net.Addr
	end           func()
	err           atomic.Pointer[error] // why the agent's side ended, if not with the end of the data
}

// Dial implements testbed.Host. Only TCP passes through an agent.
func (h *Host) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var at connected
	ours, theirs := net.Pipe()
	from, err := h.open(ctx, "/dial", dialCall{network, addr}, &at, theirs)
	if err != nil {
		_ = theirs.Close()
		return nil, err
	}
	k := &conn{Conn: ours, local: net.TCPAddrFromAddrPort(at.Local),
		remote: net.TCPAddrFromAddrPort(at.Remote), end: from.end}
	go func() {
		_, err := io.Copy(theirs, from)
		broken := err != nil && !errors.Is(err, io.ErrClosedPipe) // else it was closed here
		if broken {
			k.err.Store(&err)
		}
		if _ = theirs.Close(); broken {
			k.end()
		}
	}()
	return k, nil
}

func (k *conn) Read(b []byte) (int, error) {
	n, err := k.Conn.Read(b)
	return n, k.why(err)
}

func (k *conn) Write(b []byte) (int, error) {
	n, err := k.Conn.Write(b)
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

// lingering is how long what was written has to get under way after Close.
const lingering = 10 * time.Second

func (k *conn) Close() error {
	time.AfterFunc(lingering, k.end)
	return k.Conn.Close()
}

func (k *conn) LocalAddr() net.Addr  { return k.local }
func (k *conn) RemoteAddr() net.Addr { return k.remote }
