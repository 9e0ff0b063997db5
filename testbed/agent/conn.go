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

// Dial opens a connection that lives as long as the call: received data is streamed after
// the answer, and data that the caller streams is sent.
func (s *server) Dial(ctx context.Context, x *exchange, network, address string) {
	if !strings.HasPrefix(network, "tcp") {
		x.answer(fmt.Errorf("agent: dial %s: %w: only TCP passes through an agent", network, errors.ErrUnsupported))
		return
	}
	c, err := s.host.Dial(ctx, network, address)
	if err != nil {
		x.answer(err)
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // when the caller is gone
	if !x.answer(nil, c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()) {
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

// conn is a connection held by the agent: our end of a pipe, which supports deadlines.
type conn struct {
	net.Conn
	local, remote net.Addr
	end           func()
	err           atomic.Pointer[error] // why the agent's side ended, unless the data ended
}

// Dial implements testbed.Host. Only TCP passes through an agent.
func (h *Host) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var local, remote netip.AddrPort
	ours, theirs := net.Pipe()
	from, err := h.open(ctx, "/agent/Dial", theirs, []any{network, addr}, &local, &remote)
	if err != nil {
		_ = theirs.Close()
		return nil, err
	}
	k := &conn{Conn: ours, local: net.TCPAddrFromAddrPort(local), remote: net.TCPAddrFromAddrPort(remote),
		end: from.end}
	go func() {
		_, err := io.Copy(theirs, from)
		broken := err != nil && !errors.Is(err, io.ErrClosedPipe) // ErrClosedPipe: closed by us
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

// why replaces the pipe's error by the agent's.
func (k *conn) why(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if e := k.err.Load(); e != nil {
		return fmt.Errorf("through the agent: %w", *e)
	}
	return err
}

// lingering is how long written data may take to be sent after Close.
const lingering = 10 * time.Second

func (k *conn) Close() error {
	time.AfterFunc(lingering, k.end)
	return k.Conn.Close()
}

func (k *conn) LocalAddr() net.Addr  { return k.local }
func (k *conn) RemoteAddr() net.Addr { return k.remote }
