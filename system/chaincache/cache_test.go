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

	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var must = systemtest.Must

// get gets a chain whose database contains "whole".
func get(t *testing.T, c Cache, key string, making func()) (size int64, about string, err error) {
	size, err = c.Get(t.Context(), key, &about, func(dir string) error {
		making()
		about = "a chain"
		return os.WriteFile(filepath.Join(dir, Database), []byte("whole"), 0o644)
	})
	return size, about, err
}

func nothing() {}

func TestManyMakeItOnce(t *testing.T) {
	c := Cache{Dir: filepath.Join(t.TempDir(), "not", "there", "yet"), System: "it"}
	var made atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			size, about, err := get(t, c, "a", func() { made.Add(1) })
			if err != nil || size != 5 || about != "a chain" {
				t.Errorf("%d bytes, %q, %v", size, about, err)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times", made.Load())
	}
}

func TestDamagedChain(t *testing.T) {
	for _, file := range []string{Database, manifestFile} {
		cache := Cache{Dir: t.TempDir(), System: "it"}
		_, _, err := get(t, cache, "a", nothing)
		must(t, err)
		dir := filepath.Join(cache.Dir, "a")
		must(t, os.Truncate(filepath.Join(dir, file), 3))
		if _, _, err = get(t, cache, "a", nothing); err == nil || !strings.Contains(err.Error(), "remove "+dir) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	c := Cache{Dir: t.TempDir(), System: "it"}
	unlock, err := testbed.AwaitLock(t.Context(), filepath.Join(c.Dir, "a")+locked)
	must(t, err)
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = c.Get(ctx, "a", new(string), func(string) error { return nil })
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(),
		"it: cache of chains: wait for another process that makes this chain") {
		t.Errorf("got %v", err)
	}
}

func TestWhatCannotBeMadeLeavesNothing(t *testing.T) {
	c := Cache{Dir: t.TempDir(), System: "it"}
	never := errors.New("never")
	if _, err := c.Get(t.Context(), "a", new(string), func(dir string) error {
		return errors.Join(never, os.WriteFile(filepath.Join(dir, "half"), nil, 0o644))
	}); !errors.Is(err, never) {
		t.Errorf("got %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(c.Dir, "*", "*")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	// remains of a killed process do not hinder the next one
	must(t, os.MkdirAll(filepath.Join(c.Dir, "a"+building, "half"), 0o755))
	built := false
	if _, _, err := get(t, c, "a", func() { built = true }); err != nil || !built {
		t.Errorf("it is built: %v, %v", built, err)
	}
}
