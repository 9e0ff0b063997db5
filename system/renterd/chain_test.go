package renterd

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.sia.tech/core/gateway"
	"go.sia.tech/core/types"
	"go.sia.tech/coreutils"
	"go.sia.tech/coreutils/chain"
	"go.sia.tech/coreutils/syncer"

	siachain "github.com/plimsoll-project/plimsoll/system/siachain/chain"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
)

// peer returns a node of the libraries that renterd and hostd use. It finds the file, takes it for
// the test network's, and checks later blocks by the rules of that network.
func peer(t *testing.T, file []byte) (*chain.Manager, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "consensus.db")
	must(t, os.WriteFile(path, file, 0o600))
	db, err := coreutils.OpenBoltChainDB(path)
	must(t, err)
	zen, genesis := chain.TestnetZen()
	store, err := chain.NewDBStore(db, zen, genesis, nil)
	must(t, err)
	m := chain.NewManager(store)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	header := gateway.Header{GenesisID: genesis.ID(), UniqueID: gateway.GenerateUniqueID(),
		NetAddress: l.Addr().String()}
	s := syncer.New(l, m, siachain.NewPeerStore(nil), header)
	ended := make(chan error, 1)
	go func() { ended <- s.Run() }()
	t.Cleanup(func() { must(t, errors.Join(s.Close(), <-ended, db.Close())) })
	return m, l.Addr().String()
}

// TestChain checks that nodes that find the chain have the wallets' money and follow its blocks,
// even if they connect later.
func TestChain(t *testing.T) {
	t.Parallel()
	wallets := []types.Address{{1}, {2}}
	c, err := newChain(systemtest.Hosts(t, 1)[0], wallets)
	must(t, err)
	defer c.stop()
	var peers []*chain.Manager
	for range 2 {
		m, at := peer(t, c.file)
		peers = append(peers, m)
		if tip := m.Tip(); tip != c.manager.Tip() || tip.Height != started {
			t.Fatalf("a node finds block %v, the chain has %v", tip, c.manager.Tip())
		}
		c.peers = append(c.peers, at)
	}
	_, updates, err := peers[0].UpdatesSince(types.ChainIndex{}, 2)
	if err != nil || len(updates) != 2 {
		t.Fatalf("%d updates, %v", len(updates), err)
	}
	paid := map[types.Address]types.Currency{}
	for _, d := range updates[1].SiacoinElementDiffs() {
		o := d.SiacoinElement.SiacoinOutput
		paid[o.Address] = paid[o.Address].Add(o.Value)
	}
	for _, w := range wallets {
		if want := types.Siacoins(coins * coinSC); !paid[w].Equals(want) {
			t.Errorf("wallet %v has %v, not %v", w, paid[w], want)
		}
	}
	for range 5 {
		must(t, c.block(systemtest.Context(t)))
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if peers[0].Tip() == c.manager.Tip() && peers[1].Tip() == c.manager.Tip() {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the nodes have %v and %v, the chain has %v", peers[0].Tip(), peers[1].Tip(), c.manager.Tip())
		}
	}
	c.peers = append(c.peers, "127.0.0.1:1")
	fails(t, "a peer that is gone", c.block(systemtest.Context(t)), nil, "connect to 127.0.0.1:1")
}
