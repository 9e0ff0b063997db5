package siachain

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.sia.tech/coreutils/syncer"

	"github.com/plimsoll-project/plimsoll/system"
)

// book is a node's syncer.PeerStore: it has the node dial the peers that it was
// given and no others, and counts what they deliver.
type book struct {
	mu    sync.Mutex
	named []*entry // in their order
	round int      // of syncing; see blame
	// of requests for blocks, of all peers
	timedOut, failed int64
}

// entry is a peer that the node was given.
type entry struct {
	address   string
	info      syncer.PeerInfo
	received  atomic.Int64 // bytes
	conn      net.Conn     // the last connection; nil: none
	joined    bool         // the handshake of conn is done: it is a peer
	lost      bool         // conn has ended
	useful    time.Time    // when it delivered last
	delivered int64        // requests
	timedOut  int64
	failed    int64
	out       int  // the round in which it failed
	vague     bool // a failure may have been its, or another's
	trouble   string
}

func newBook(peers []string) *book {
	b := &book{}
	for _, a := range peers {
		b.named = append(b.named, &entry{address: a, info: syncer.PeerInfo{Address: a, FirstSeen: time.Now()}, out: -1})
	}
	return b
}

// of is the entry of a peer, or nil.
func (b *book) of(address string) *entry {
	for _, e := range b.named {
		if e.address == address {
			return e
		}
	}
	return nil
}

// AddPeer implements syncer.PeerStore: whoever connects may stay, but is never
// dialled.
func (*book) AddPeer(string) error { return nil }

// Peers implements syncer.PeerStore.
func (b *book) Peers() ([]syncer.PeerInfo, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []syncer.PeerInfo
	for _, e := range b.named {
		all = append(all, e.info)
	}
	return all, nil
}

// PeerInfo implements syncer.PeerStore.
func (b *book) PeerInfo(address string) (syncer.PeerInfo, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.of(address); e != nil {
		return e.info, nil
	}
	return syncer.PeerInfo{}, syncer.ErrPeerNotFound
}

// UpdatePeerInfo implements syncer.PeerStore. The syncer calls it when a peer is
// connected, and when one has delivered the blocks of a request.
func (b *book) UpdatePeerInfo(address string, change func(*syncer.PeerInfo)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.of(address)
	if e == nil {
		return nil // it has connected by itself
	}
	before := e.info
	change(&e.info)
	if e.info.SyncedBlocks != before.SyncedBlocks {
		e.delivered++
		e.useful = time.Now()
	}
	if !e.info.LastConnect.Equal(before.LastConnect) {
		e.trouble, e.joined = "", true
	}
	return nil
}

// Ban implements syncer.PeerStore: peers have the blocks that we have made.
func (*book) Ban(string, time.Duration, string) error { return nil }

// Banned implements syncer.PeerStore.
func (*book) Banned(string) (bool, error) { return false, nil }

// begin is called when a round of syncing begins: every connected peer gets a
// worker, and keeps it until a request of it fails.
func (b *book) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.round++
}

// blame finds whose request failed. The library's log does not say it, but a peer
// has one request under way at most, and none after one that failed in this round:
// the peer that remains failed. Where several remain, no one is blamed, and their
// counts of failed requests are not reported any more. least is the shortest time in
// which a request can time out: a peer that delivered within it did not time out.
func (b *book) blame(err error, timedOut bool, least time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if timedOut {
		b.timedOut++
	} else {
		b.failed++
	}
	var suspects, lost []*entry
	for _, e := range b.named {
		if !e.joined || e.out == b.round || timedOut && time.Since(e.useful) < least {
			continue
		}
		suspects = append(suspects, e)
		if e.lost {
			lost = append(lost, e)
		}
	}
	if !timedOut && len(lost) == 1 {
		suspects = lost
	}
	if len(suspects) != 1 {
		for _, e := range suspects {
			e.vague = true
		}
		return
	}
	e := suspects[0]
	e.out = b.round
	if timedOut {
		e.timedOut++
	} else {
		e.failed++
	}
	if e.trouble == "" || !e.lost {
		e.trouble = "a request for blocks failed: " + err.Error()
	}
}

// lose is called for what ends a connection, of which the first counts: err, or, where it is nil, the node.
func (b *book) lose(e *entry, conn net.Conn, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	late := errors.Is(err, os.ErrDeadlineExceeded)
	if e.conn != conn || e.lost || e.joined && late { // or of one request
		return
	}
	e.lost = true
	switch {
	case !e.joined && late:
		e.trouble = "handshake: the peer did not answer as far as it should: " + err.Error()
	case !e.joined:
		e.trouble = "handshake: given up, as with a peer of a different genesis block"
	case errors.Is(err, io.EOF):
		e.trouble = "the peer has closed the connection"
	case err != nil:
		e.trouble = err.Error()
	default:
		e.trouble = "the node has closed the connection, which it does when a request for headers fails; it dials " +
			"again after 5 minutes"
	}
}

// dial is called for each new connection, and for each failed attempt to make one.
func (b *book) dial(e *entry, conn net.Conn, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		e.trouble = err.Error()
		return
	}
	e.conn, e.joined, e.lost = conn, false, false
}

// shares are what the peers have delivered.
func (b *book) shares() (all []system.PeerShare, timedOut, failed int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.named {
		s := system.PeerShare{
			Address: e.address, Blocks: int64(e.info.SyncedBlocks), Bytes: e.received.Load(), Busy: e.info.SyncDuration,
			Requests: e.delivered + e.timedOut + e.failed, TimedOut: e.timedOut, Failed: e.failed, Trouble: e.trouble,
		}
		if e.vague {
			s.Requests, s.TimedOut, s.Failed = -1, -1, -1
		}
		all = append(all, s)
	}
	return all, b.timedOut, b.failed
}
