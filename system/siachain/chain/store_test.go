package chain

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.sia.tech/coreutils/syncer"
)

// synced returns the directory of a closed store with a chain's blocks.
func synced(t *testing.T, c *Chain) string {
	t.Helper()
	dir := t.TempDir()
	s, err := OpenStore(dir, c.Spec.Network(), c.Spec.Genesis(), true)
	must(t, err)
	must(t, Replay(t.Context(), c, s.Manager(), 1))
	must(t, s.Close())
	return dir
}

func TestAStoreGoesOnWhereItWas(t *testing.T) {
	for _, form := range forms {
		c := cached(t, small(form))
		dir := synced(t, c)
		info, err := os.Stat(filepath.Join(dir, StoreFile))
		if err != nil || info.Size() > c.StoreLimit() {
			t.Errorf("%s: a store of %d bytes, %d at most were foretold, %v", form, info.Size(), c.StoreLimit(), err)
		}
		for _, o := range []bool{false, true} {
			s, err := OpenStore(dir, c.Spec.Network(), c.Spec.Genesis(), o)
			if err != nil {
				t.Fatalf("%s: %v: %v", form, o, err)
			}
			if got := s.Manager().Tip(); got != c.Tip {
				t.Errorf("%s: %v: tip %v", form, o, got)
			}
			must(t, s.Close())
		}
	}
}

// TestStoresThatAreNotOpened checks that the error names the file, which is not changed.
func TestStoresThatAreNotOpened(t *testing.T) {
	s := Spec{Blocks: 5, Form: V2, Seed: 7}
	chain := cached(t, s)
	for what, c := range map[string]struct {
		spec   Spec
		spoil  func(path string) error
		reason string
	}{
		"in use": {s, func(path string) error {
			store, err := OpenStore(filepath.Dir(path), s.Network(), s.Genesis(), false)
			if err == nil {
				t.Cleanup(func() { store.Close() })
			}
			return err
		}, "timeout"},
		"another genesis": {stranger(s), nil, "another chain"},
		"another network": {Spec{Blocks: 1, Form: V1}, nil, "different network"},
		"no database": {s, func(path string) error {
			return os.WriteFile(path, bytes.Repeat([]byte("no"), 9000), 0o600)
		}, "invalid"},
		"not there": {s, func(path string) error { return os.RemoveAll(filepath.Dir(path)) }, "no such file"},
	} {
		dir := synced(t, chain)
		path := filepath.Join(dir, StoreFile)
		if c.spoil != nil {
			must(t, c.spoil(path))
		}
		before, _ := os.ReadFile(path)
		for range 2 { // twice, since nothing may keep the lock
			_, err := OpenStore(dir, c.spec.Network(), c.spec.Genesis(), false)
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if now, _ := os.ReadFile(path); !bytes.Equal(now, before) {
			t.Errorf("%s: the file has changed", what)
		}
	}
}

// A chain other than the one that was made is not served.
func TestAnotherChainIsNotServed(t *testing.T) {
	c := cached(t, small(V2))
	c.Tip.Height++
	if _, _, err := c.OpenReadOnly(); err == nil || !strings.Contains(err.Error(), c.store()) {
		t.Error(err)
	}
	if err := Replay(t.Context(), c, fresh(t, c.Spec).Manager(), 1); err == nil {
		t.Error("it is replayed")
	}
}

func TestAChainIsMadeOnce(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "not", "there", "yet")
	s := Spec{Blocks: 30, Transactions: 1, Form: V2, Seed: 1}
	var told [][2]int
	one, err := Get(t.Context(), cache, s, func(done, total int) { told = append(told, [2]int{done, total}) })
	must(t, err)
	if n := len(told); n == 0 || told[n-1] != [2]int{30, 30} {
		t.Errorf("progress %v", told)
	}
	two, err := Get(t.Context(), cache, s, func(int, int) { t.Error("it is made again") })
	must(t, err)
	if one.Dir != two.Dir || one.Manifest != two.Manifest {
		t.Errorf("got\n%+v\n%+v", one, two)
	}
	again, err := Open(one.Dir)
	if err != nil || again.Manifest != one.Manifest {
		t.Errorf("opened: %+v, %v", again, err)
	}
}

func TestABuildThatIsEndedLeavesNothing(t *testing.T) {
	cache := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	_, err := Get(ctx, cache, Spec{Blocks: maxBlocks, Form: V2}, func(done, _ int) { cancel(enough) })
	if !errors.Is(err, enough) {
		t.Fatalf("got %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(cache, "*", "*")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A peer that connects by itself may stay, but is never dialled. Only deliveries of the given peers
// count.
func TestOnlyWhomItWasTold(t *testing.T) {
	const one, two = "10.0.0.1:1", "10.0.0.2:1"
	b := NewPeerStore([]string{one})
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
	if shares := b.Shares(); len(shares) != 1 || shares[0].Address != one || shares[0].Blocks != 100 {
		t.Errorf("%+v", shares)
	}
}
