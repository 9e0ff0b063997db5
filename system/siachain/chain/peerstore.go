package chain

import (
	"slices"
	"sync"
	"time"

	"go.sia.tech/coreutils/syncer"

	"github.com/plimsoll-project/plimsoll/system"
)

// PeerStore is a node's syncer.PeerStore. It makes the node dial only the given peers, and counts what
// they deliver.
type PeerStore struct {
	mu    sync.Mutex
	named []syncer.PeerInfo // in the given order
}

// NewPeerStore returns a book with the peers that the node dials.
func NewPeerStore(peers []string) *PeerStore {
	b := &PeerStore{}
	for _, a := range peers {
		b.named = append(b.named, syncer.PeerInfo{Address: a, FirstSeen: time.Now()})
	}
	return b
}

// of returns the information about a peer, or nil.
func (b *PeerStore) of(address string) *syncer.PeerInfo {
	i := slices.IndexFunc(b.named, func(p syncer.PeerInfo) bool { return p.Address == address })
	if i < 0 {
		return nil
	}
	return &b.named[i]
}

// AddPeer implements syncer.PeerStore. Peers that connect by themselves may stay, but are never
// dialled.
func (*PeerStore) AddPeer(string) error { return nil }

// Peers implements syncer.PeerStore.
func (b *PeerStore) Peers() ([]syncer.PeerInfo, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.named), nil
}

// PeerInfo implements syncer.PeerStore.
func (b *PeerStore) PeerInfo(address string) (syncer.PeerInfo, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.of(address); p != nil {
		return *p, nil
	}
	return syncer.PeerInfo{}, syncer.ErrPeerNotFound
}

// UpdatePeerInfo implements syncer.PeerStore. The syncer calls it when a peer has connected and
// when one has delivered the blocks of a request.
func (b *PeerStore) UpdatePeerInfo(address string, change func(*syncer.PeerInfo)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.of(address); p != nil { // otherwise the peer has connected by itself
		change(p)
	}
	return nil
}

// Ban implements syncer.PeerStore. It does nothing, because peers serve blocks that Plimsoll has
// made.
func (*PeerStore) Ban(string, time.Duration, string) error { return nil }

// Banned implements syncer.PeerStore.
func (*PeerStore) Banned(string) (bool, error) { return false, nil }

// Shares returns what the peers have delivered.
func (b *PeerStore) Shares() (all []system.PeerShare) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.named {
		all = append(all, system.PeerShare{Address: p.Address, Blocks: int64(p.SyncedBlocks)})
	}
	return all
}
