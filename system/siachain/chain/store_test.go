package chain

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// synced is the directory of a closed store that has a chain's blocks.
func synced(t *testing.T, c *Chain) string {
	t.Helper()
	dir := t.TempDir()
	s, err := OpenStore(dir, c.Spec.Network(), c.Spec.Genesis(), StoreOptions{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := Replay(t.Context(), c, s.Manager(), 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// checkStore reads all pages of a store that no process has open.
func checkStore(dir string) (err error) {
	var f file
	defer f.abandon()
	return guard(dir, func() error {
		if err := f.open(filepath.Join(dir, StoreFile), &bbolt.Options{ReadOnly: true, PreLoadFreelist: true}); err != nil {
			return err
		}
		return errors.Join(f.whole(), f.db.View(func(tx *bbolt.Tx) (err error) {
			for wrong := range tx.Check() { // to its end: it reads in a goroutine of its own
				err = wrong
			}
			return err
		}))
	})
}

func TestAStoreGoesOnWhereItWas(t *testing.T) {
	for _, form := range forms {
		c := cached(t, small(form))
		dir := synced(t, c)
		if err := checkStore(dir); err != nil {
			t.Error(err)
		}
		info, err := os.Stat(filepath.Join(dir, StoreFile))
		if err != nil || info.Size() > c.StoreLimit() {
			t.Errorf("%s: a store of %d bytes, %d at most were foretold, %v", form, info.Size(), c.StoreLimit(), err)
		}
		for _, o := range []StoreOptions{{}, {NoSync: true}, {MapFreelist: true}} {
			s, err := OpenStore(dir, c.Spec.Network(), c.Spec.Genesis(), o)
			if err != nil {
				t.Fatalf("%s: %+v: %v", form, o, err)
			}
			if got := s.Manager().Tip(); got != c.Tip {
				t.Errorf("%s: %+v: tip %v", form, o, got)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestAStoreInUse(t *testing.T) {
	s := small(V2)
	dir := t.TempDir()
	store, err := OpenStore(dir, s.Network(), s.Genesis(), StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = OpenStore(dir, s.Network(), s.Genesis(), StoreOptions{})
	if !errors.Is(err, ErrLocked) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), StoreFile) {
		t.Errorf("got %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAStoreOfAnotherChain(t *testing.T) {
	for _, form := range forms {
		s := small(form)
		dir := synced(t, cached(t, s))
		other := s
		other.Form = forms[0]
		if form == V1 {
			other.Form = forms[1]
		}
		for what, s := range map[string]Spec{"genesis": stranger(s), "network": other} {
			_, err := OpenStore(dir, s.Network(), s.Genesis(), StoreOptions{})
			if !errors.Is(err, ErrOtherGenesis) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s, other %s: %v", form, what, err)
			}
		}
		// and nothing of it has changed
		if store, err := OpenStore(dir, s.Network(), s.Genesis(), StoreOptions{}); err != nil {
			t.Error(err)
		} else {
			store.Close()
		}
		if err := checkStore(dir); err != nil {
			t.Error(err)
		}
	}
}

func TestAStoreThatIsNotThere(t *testing.T) {
	s := small(V2)
	_, err := OpenStore(filepath.Join(t.TempDir(), "no"), s.Network(), s.Genesis(), StoreOptions{})
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

// Whatever is wrong with a store's file, opening it ends, with an error that names
// it, or with a store; and the file stays.
func TestDamagedStores(t *testing.T) {
	c := cached(t, small(V2))
	whole, err := os.ReadFile(filepath.Join(synced(t, c), StoreFile))
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(b []byte) {
		for i := range b {
			b[i] = byte(random.Uint32())
		}
	}
	for _, tt := range []struct {
		what   string
		damage func(b []byte) []byte
		opens  bool // without Check
	}{
		{"half of it", func(b []byte) []byte { return b[:len(b)/2] }, false},
		{"its last page is missing", func(b []byte) []byte { return b[:len(b)/4] }, false},
		{"its first page alone", func(b []byte) []byte { return b[:page] }, false},
		{"a few bytes", func(b []byte) []byte { return b[:100] }, false},
		{"text", func(b []byte) []byte { return bytes.Repeat([]byte("no database\n"), 1000) }, false},
		{"zeros", func(b []byte) []byte { return make([]byte, len(b)) }, false},
		{"noise in both pages of description", func(b []byte) []byte { noise(b[:2*page]); return b }, false},
		{"noise in all other pages", func(b []byte) []byte { noise(b[2*page:]); return b }, false},
		{"noise in the middle", func(b []byte) []byte { noise(b[len(b)/8 : len(b)/8+20*page]); return b }, true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, StoreFile)
			b := tt.damage(bytes.Clone(whole))
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 { // again: nothing has kept its lock
				s, err := OpenStore(dir, c.Spec.Network(), c.Spec.Genesis(), StoreOptions{})
				if err == nil {
					if !tt.opens {
						t.Error("it opens")
					}
					s.Close()
					continue
				}
				if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
					t.Errorf("open: %v", err)
				}
			}
			if err := checkStore(dir); err == nil {
				t.Errorf("its pages: %v", err)
			}
			if now, err := os.ReadFile(path); err != nil || len(now) < len(b) {
				t.Errorf("the file is gone or shorter: %d of %d bytes, %v", len(now), len(b), err)
			}
		})
	}
}

// A chain that was damaged after it was opened for the first time is not served.
func TestADamagedChainIsNotServed(t *testing.T) {
	for _, form := range forms {
		c := cached(t, small(form))
		if err := os.Truncate(c.store(), 20_000); err != nil {
			t.Fatal(err)
		}
		_, _, err := c.OpenReadOnly()
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.store()) {
			t.Errorf("%s: %v", form, err)
		}
		if err := Replay(t.Context(), c, fresh(t, c.Spec).Manager(), 1); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", form, err)
		}
	}
}
