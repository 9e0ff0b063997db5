package chaincache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Entry is something in a cache.
type Entry struct {
	Name  string    `json:"name"` // in the directory, for Remove
	Path  string    `json:"path"`
	State string    `json:"state"` // one of the constants
	Used  time.Time `json:"used"`  // last
	Size  int64     `json:"bytes"` // on the disk
}

// States of an entry.
const (
	Whole      = "whole"
	Damaged    = "damaged"    // kept to look at
	Unfinished = "unfinished" // it is being made, or its maker has died
)

// List is everything in the cache, the least recently used first.
func (c Cache) List() ([]Entry, error) {
	all, err := os.ReadDir(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, c.failed(err)
	}
	var entries []Entry
	for _, d := range all {
		info, err := d.Info()
		if err != nil || !d.IsDir() {
			continue // removed meanwhile, or a lock
		}
		e := Entry{Name: d.Name(), Path: filepath.Join(c.Dir, d.Name()), State: Whole, Used: info.ModTime()}
		switch {
		case strings.HasSuffix(e.Name, damaged):
			e.State = Damaged
		case strings.HasSuffix(e.Name, building):
			e.State = Unfinished
		}
		files, err := os.ReadDir(e.Path)
		if err != nil {
			continue
		}
		for _, f := range files {
			if info, err := f.Info(); err == nil {
				e.Size += info.Size()
			}
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return a.Used.Compare(b.Used) })
	return entries, nil
}

// Remove removes what List calls name. It waits until nobody looks for that chain
// or makes it. Nodes that have the files open keep them until they end; nodes of the
// same run that are started later miss them.
func (c Cache) Remove(ctx context.Context, name string) error {
	path := filepath.Join(c.Dir, name)
	if info, err := os.Lstat(path); name == "" || name == "." || name == ".." || name != filepath.Base(name) || err != nil || !info.IsDir() {
		return c.failed(fmt.Errorf("there is no chain %q in %s", name, c.Dir))
	}
	key := strings.TrimSuffix(strings.TrimSuffix(path, building), damaged)
	unlock, err := lock(ctx, key+locked)
	if err != nil {
		return c.failed(err)
	}
	defer unlock()
	if err := os.RemoveAll(path); err != nil {
		return c.failed(err)
	}
	for _, other := range []string{key, key + building, key + damaged} {
		if _, err := os.Lstat(other); !errors.Is(err, fs.ErrNotExist) {
			return nil // the lock is needed
		}
	}
	if err := os.Remove(key + locked); err != nil {
		return c.failed(err)
	}
	return nil
}
