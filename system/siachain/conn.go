package siachain

import (
	"context"
	"errors"
	"net"
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
	m := &metered{Conn: conn, book: d.book, entry: d.book.of(address)}
	d.book.dial(m.entry, m, err)
	return m, err
}

// metered is a connection to a peer.
type metered struct {
	net.Conn
	book  *book
	entry *entry
}

// Read implements net.Conn.
func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	m.entry.received.Add(int64(n))
	if err != nil && !errors.Is(err, net.ErrClosed) {
		m.book.lose(m.entry, m, err)
	}
	return n, err
}

// Close implements net.Conn.
func (m *metered) Close() error {
	err := m.Conn.Close()
	m.book.lose(m.entry, m, nil)
	return err
}
