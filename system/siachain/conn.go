package siachain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.sia.tech/core/gateway"
)

// dialer is how the syncer connects: it counts what comes from each peer, and keeps
// why a connection was lost, which the syncer does not report.
type dialer struct {
	net.Dialer
	book   *book
	header gateway.Header // as the syncer shows it
}

// DialContext implements syncer.Dialer.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.Dialer.DialContext(ctx, network, address)
	e := d.book.of(address)
	if e == nil {
		return conn, err
	}
	if err != nil {
		d.book.dial(e, nil, err)
		return nil, err
	}
	m := &metered{Conn: conn, lost: func(m *metered, err error) { d.lost(e, m, err) }}
	d.book.dial(e, m, nil)
	return m, nil
}

// lost is called once for each connection.
func (d *dialer) lost(e *entry, m *metered, err error) {
	switch {
	case !m.joined.Load(): // closed by the syncer, over the handshake
		d.book.lose(e, m, "handshake: "+d.again(m).Error())
	case errors.Is(err, io.EOF):
		d.book.lose(e, m, "the peer has closed the connection")
	case err != nil:
		d.book.lose(e, m, err.Error())
	default:
		d.book.lose(e, m, "the node has closed the connection, which it does when a request for headers fails; it dials again after 5 minutes")
	}
}

// again shakes hands once more, with what the peer sent, to learn how it went.
func (d *dialer) again(m *metered) error {
	m.mu.Lock()
	head := bytes.Clone(m.head)
	m.mu.Unlock()
	t, err := gateway.Dial(&recorded{Reader: bytes.NewReader(head), remote: m.RemoteAddr()}, d.header)
	if err == nil {
		t.Close()
		return errors.New("given up by the node")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the peer did not answer as far as it should: %w", err)
	}
	return err
}

// headBytes is more than a peer sends in a handshake.
const headBytes = 1 << 10

// metered is a connection to a peer.
type metered struct {
	net.Conn
	lost     func(*metered, error)
	received atomic.Int64
	joined   atomic.Bool // the handshake is done: it is a peer
	closed   atomic.Bool

	mu   sync.Mutex
	head []byte // what was received first
}

// Read implements net.Conn.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	m.received.Add(int64(n))
	if !m.joined.Load() {
		m.mu.Lock()
		if len(m.head) < headBytes {
			m.head = append(m.head, p[:n]...)
		}
		m.mu.Unlock()
	}
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrDeadlineExceeded) && m.joined.Load() {
		m.end(err)
	}
	return n, err
}

// Close implements net.Conn.
func (m *metered) Close() error {
	err := m.Conn.Close()
	m.end(nil)
	return err
}

func (m *metered) end(err error) {
	if m.closed.CompareAndSwap(false, true) {
		m.lost(m, err)
	}
}

// recorded is a connection whose other side has said what it will say.
type recorded struct {
	io.Reader
	remote net.Addr
}

func (*recorded) Write(p []byte) (int, error)      { return len(p), nil }
func (*recorded) Close() error                     { return nil }
func (r *recorded) LocalAddr() net.Addr            { return r.remote }
func (r *recorded) RemoteAddr() net.Addr           { return r.remote }
func (*recorded) SetDeadline(time.Time) error      { return nil }
func (*recorded) SetReadDeadline(time.Time) error  { return nil }
func (*recorded) SetWriteDeadline(time.Time) error { return nil }
