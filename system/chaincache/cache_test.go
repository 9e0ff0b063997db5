package chaincache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// want is a chain whose only file says "whole".
func want(key string, making func()) Want {
	return Want{
		Key: key,
		Look: func(dir string) error {
			b, err := os.ReadFile(filepath.Join(dir, "file"))
			if err == nil && string(b) != "whole" {
				err = errors.New("it: a wrong file")
			}
			return err
		},
		Make: func(dir string) error {
			making()
			return os.WriteFile(filepath.Join(dir, "file"), []byte("whole"), 0o644)
		},
	}
}

func TestManyMakeItOnce(t *testing.T) {
	c := Cache{Dir: filepath.Join(t.TempDir(), "not", "there", "yet"), System: "it"}
	var made atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := c.Get(t.Context(), want("a", func() { made.Add(1) }))
			if err != nil || got.Dir != filepath.Join(c.Dir, "a") || got.Note != "" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

func TestADamagedOneIsKept(t *testing.T) {
	c := Cache{Dir: t.TempDir(), System: "it"}
	for i := range 3 { // the second damaged one takes the place of the first
		got, err := c.Get(t.Context(), want("a", func() {}))
		if err != nil || !got.Built || (i > 0) != strings.Contains(got.Note, "damaged: a wrong file; it is kept in "+got.Dir+damaged) {
			t.Fatalf("%+v, %v", got, err)
		}
		if err := os.WriteFile(filepath.Join(got.Dir, "file"), []byte("spoilt"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A damaged chain that cannot be moved aside is an error with both reasons.
func TestADamagedOneThatCannotBeMoved(t *testing.T) {
	c := Cache{Dir: t.TempDir(), System: "it"}
	got, err := c.Get(t.Context(), want("a", func() {}))
	if err != nil {
		t.Fatal(err)
	}
	w := want("a", func() { t.Error("it is made") })
	w.Look = func(dir string) error { // the directory is gone when it is to be moved
		return errors.Join(errors.New("it: a wrong file"), os.RemoveAll(dir))
	}
	_, err = c.Get(t.Context(), w)
	if err == nil || strings.Count(err.Error(), "a wrong file") != 1 || strings.Count(err.Error(), "no such file") != 1 || !strings.Contains(err.Error(), got.Dir) {
		t.Errorf("%v", err)
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	c := Cache{Dir: t.TempDir(), System: "it"}
	unlock, err := lock(t.Context(), filepath.Join(c.Dir, "a")+locked)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = c.Get(ctx, want("a", func() {}))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "it: cache of chains: another process is making this chain") {
		t.Errorf("got %v", err)
	}
}

func TestWhatCannotBeMadeLeavesNothing(t *testing.T) {
	c := Cache{Dir: t.TempDir(), System: "it"}
	never := errors.New("never")
	w := want("a", func() {})
	w.Make = func(dir string) error {
		return errors.Join(never, os.WriteFile(filepath.Join(dir, "half"), nil, 0o644))
	}
	if _, err := c.Get(t.Context(), w); !errors.Is(err, never) {
		t.Errorf("got %v", err)
	}
	if all, err := c.List(); err != nil || len(all) != 0 {
		t.Errorf("left: %v, %v", all, err)
	}
	// what a killed one has left is in nobody's way
	if err := os.MkdirAll(filepath.Join(c.Dir, "a"+building, "half"), 0o755); err != nil {
		t.Fatal(err)
	}
	if all, err := c.List(); err != nil || len(all) != 1 || all[0].State != Unfinished {
		t.Errorf("left: %v, %v", all, err)
	}
	if got, err := c.Get(t.Context(), want("a", func() {})); err != nil || !got.Built {
		t.Errorf("%+v, %v", got, err)
	}
	if all, err := c.List(); err != nil || len(all) != 1 || all[0].State != Whole || all[0].Size != int64(len("whole")) {
		t.Errorf("%v, %v", all, err)
	}
}

func TestListAndRemove(t *testing.T) {
	c := Cache{Dir: t.TempDir(), System: "it"}
	get := func(key string) Got {
		t.Helper()
		got, err := c.Get(t.Context(), want(key, func() {}))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for i, key := range []string{"a", "b", "c"} {
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(get(key).Dir, at, at); err != nil {
			t.Fatal(err)
		}
	}
	get("a") // used again: now the last
	names := func() (all []string) {
		entries, err := c.List()
		if err != nil {
			t.Error(err)
		}
		for _, e := range entries {
			all = append(all, e.Name)
		}
		return all
	}
	if got := strings.Join(names(), " "); got != "b c a" {
		t.Errorf("listed: %s", got)
	}
	if err := c.Remove(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names(), " "); got != "c a" {
		t.Errorf("left: %s", got)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "b"+locked)); err == nil {
		t.Error("its lock is left")
	}
	for _, name := range []string{"", ".", "..", "../x", "b", "c" + locked} {
		if err := c.Remove(t.Context(), name); err == nil {
			t.Errorf("%q is removed", name)
		}
	}
	if all, err := (Cache{Dir: filepath.Join(c.Dir, "none")}).List(); err != nil || all != nil {
		t.Errorf("of a directory that is not there: %v, %v", all, err)
	}
}

// While some look for a chain and others remove it, nobody finds half of it.
func TestGettingWhileRemoving(t *testing.T) {
	c := Cache{Dir: t.TempDir(), System: "it"}
	var making atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 20 {
				got, err := c.Get(t.Context(), want("a", func() {
					if making.Add(1) != 1 {
						t.Error("two make it at the same time")
					}
					time.Sleep(time.Millisecond)
					making.Add(-1)
				}))
				if err != nil || got.Note != "" {
					t.Errorf("%+v, %v", got, err)
				}
				c.Remove(t.Context(), "a") // another may have done it
			}
		})
	}
	all.Wait()
}
