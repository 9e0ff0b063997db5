package chain

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// synced is the directory of a closed store that has a chain's blocks.
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
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestStoresThatAreNotOpened: the error names the file, which stays as it is.
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
			return os.WriteFile(path, bytes.Repeat([]byte("no"), 9000),
				0o600)
		}, "invalid"},
		"not there": {s, func(path string) error { return os.RemoveAll(filepath.Dir(path)) }, "no such file"},
	} {
		dir := synced(t, chain)
		path := filepath.Join(dir, StoreFile)
		if c.spoil != nil {
			must(t, c.spoil(path))
		}
		before, _ := os.ReadFile(path)
		for range 2 { // again: nothing has kept its lock
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

// A chain that is not the one that was made is not served.
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
