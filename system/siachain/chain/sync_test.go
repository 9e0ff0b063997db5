package chain

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	bbolterrors "go.etcd.io/bbolt/errors"
	"go.sia.tech/core/gateway"
	"go.sia.tech/core/types"
	"go.sia.tech/coreutils/chain"
	"go.sia.tech/coreutils/syncer"
	"go.sia.tech/coreutils/testutil"

	"github.com/plimsoll-project/plimsoll/system/chaincache"
)

// listen is a listener on this machine's own address.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// run runs the library's syncer on a chain until the test ends.
func run(t *testing.T, m *chain.Manager, genesis types.BlockID, o ...syncer.Option) *syncer.Syncer {
	t.Helper()
	l := listen(t)
	s := syncer.New(l, m, testutil.NewEphemeralPeerStore(), gateway.Header{
		GenesisID:  genesis,
		UniqueID:   gateway.GenerateUniqueID(),
		NetAddress: l.Addr().String(),
	}, o...)
	ended := make(chan error, 1)
	go func() { ended <- s.Run() }()
	t.Cleanup(func() {
		s.Close()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Error("the syncer does not end")
		}
	})
	return s
}

// A fresh node gets the chain from two peers that share its file, by the library's
// own syncer.
func TestPeersServeOneFileAndAFreshNodeFollows(t *testing.T) {
	for _, form := range forms {
		c := cached(t, small(form))
		store := fresh(t, c.Spec)
		peers := []*syncer.Syncer{run(t, open(t, c), c.Genesis), run(t, open(t, c), c.Genesis)}
		node := run(t, store.Manager(), c.Genesis, syncer.WithSyncInterval(50*time.Millisecond))
		for _, p := range peers {
			if _, err := node.Connect(t.Context(), p.Addr()); err != nil {
				t.Fatalf("%s: %v", form, err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		for store.Manager().Tip() != c.Tip {
			select {
			case <-ctx.Done():
				t.Fatalf("%s: tip %v, want %v", form, store.Manager().Tip(), c.Tip)
			case <-time.After(10 * time.Millisecond):
			}
		}
		if n := store.Commits(); n < 2 {
			t.Errorf("%s: %d commits", form, n)
		}
		if err := chaincache.Check(t.Context(), c.Dir, &c.Manifest); err != nil { // serving has changed nothing
			t.Error(err)
		}
	}
}

func TestASharedChainTakesNoBlocks(t *testing.T) {
	for _, form := range forms {
		c := cached(t, small(form))
		m := open(t, c)
		all := blocks(t, m)
		if err := m.AddBlocks(all[len(all)-3:]); err != nil {
			t.Errorf("%s: blocks that it has: %v", form, err)
		}
		longer := c.Spec
		longer.Blocks++
		next := blocks(t, open(t, cached(t, longer)))
		func() {
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, bbolterrors.ErrTxNotWritable) {
					t.Errorf("%s: another block: %v", form, err)
				}
			}()
			m.AddBlocks(next[len(next)-1:])
		}()
	}
}

// The library's syncer says nothing of a peer that it could not connect to: whoever
// wants to know must connect itself.
func TestAPeerOnAnotherGenesisIsRefused(t *testing.T) {
	c, stranger := cached(t, small(V2)), cached(t, stranger(small(V2)))
	peer := run(t, open(t, stranger), stranger.Genesis)
	node := run(t, fresh(t, c.Spec).Manager(), c.Genesis)
	_, err := node.Connect(t.Context(), peer.Addr())
	if err == nil || !strings.Contains(err.Error(), "peer has different genesis block") {
		t.Errorf("got %v", err)
	}
	t.Log(err)
}
