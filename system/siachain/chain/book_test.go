package chain

import (
	"errors"
	"testing"

	"go.sia.tech/coreutils/syncer"
)

// Who connects by himself may stay, and is never dialled; what the others deliver counts.
func TestOnlyWhomItWasTold(t *testing.T) {
	const one, two = "10.0.0.1:1", "10.0.0.2:1"
	b := NewBook([]string{one})
	for _, a := range []string{one, two} {
		must(t, b.AddPeer(a))
		must(t, b.UpdatePeerInfo(a, func(p *syncer.PeerInfo) { p.SyncedBlocks += 100 }))
	}
	if p, err := b.Peers(); err != nil || len(p) != 1 || p[0].Address != one {
		t.Errorf("%v, %v", p, err)
	}
	if _, err := b.PeerInfo(two); !errors.Is(err, syncer.ErrPeerNotFound) {
		t.Error(err)
	}
	b.Failure(true)
	b.Failure(false)
	shares, timedOut, failed := b.Shares()
	if len(shares) != 1 || shares[0].Address != one || shares[0].Blocks != 100 || timedOut != 1 || failed != 1 {
		t.Errorf("%+v, %d timed out, %d failed", shares, timedOut, failed)
	}
}
