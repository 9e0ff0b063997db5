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

// Dial opens a connection, which lives as long as the call: what comes is streamed after the
// answer, what the caller streams is sent.
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
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // the caller is gone
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

// conn is a connection that the agent holds: our end of a pipe, which knows deadlines.
type conn struct {
	net.Conn
	local, remote net.Addr
	end           func()
	err           atomic.Pointer[error] // why the agent's side ended, if not with the end of the data
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
