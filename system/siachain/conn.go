package siachain

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
)

// dialer is how the syncer connects: it counts what comes from each peer, and keeps
// why a connection was lost, which the syncer does not report.
type dialer struct {
	net.Dialer
	book *book
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
	m := &metered{Conn: conn, book: d.book, entry: e}
	d.book.dial(e, m, nil)
	return m, nil
}

// metered is a connection to a peer.
type metered struct {
	net.Conn
	book     *book
	entry    *entry
	received atomic.Int64
	joined   atomic.Bool // the handshake is done: it is a peer
	closed   atomic.Bool
}

// Read implements net.Conn.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	m.received.Add(int64(n))
	late := errors.Is(err, os.ErrDeadlineExceeded) && m.joined.Load() // of one request
	if err != nil && !late && !errors.Is(err, net.ErrClosed) {
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

// end is called for what ends the connection, of which the first counts: err, or,
// where it is nil, the node.
func (m *metered) end(err error) {
	if !m.closed.CompareAndSwap(false, true) {
		return
	}
	why, stranger := "", false
	switch {
	case !m.joined.Load() && errors.Is(err, os.ErrDeadlineExceeded):
		why = "handshake: the peer did not answer as far as it should: " + err.Error()
	case !m.joined.Load():
		why, stranger = "handshake: given up, as with a peer of a different genesis block", m.received.Load() > 0
	case errors.Is(err, io.EOF):
		why = "the peer has closed the connection"
	case err != nil:
		why = err.Error()
	default:
		why = "the node has closed the connection, which it does when a request for headers fails; it dials again " +
			"after 5 minutes"
	}
	m.book.lose(m.entry, m, why, stranger)
}
