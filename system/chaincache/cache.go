// Package chaincache caches the chains of systems whose nodes follow one. They are costly to make
// and the same in all runs. Any number of processes can use a cache directory at the same time.
package chaincache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed"
)

const (
	// Database is the file of a chain that its maker writes.
	Database = "consensus.db"

	manifestFile = "manifest.json"
	building     = ".building" // suffix of a chain that is being made, or that was when its maker died
	locked       = ".lock"     // suffix of the file that is locked while a chain is looked up or made
)

// Cache is a directory of chains. Each chain's directory is named after everything that determines
// it: its spec, the format of its files, and the versions of the software that made it.
type Cache struct {
	Dir    string
	System string // prefix of errors
}

// manifest describes a chain next to its database.
type manifest struct {
	About any   `json:"about"`
	Bytes int64 `json:"bytes"`
}

// Get makes sure that directory key of the cache has the chain, and returns the size of its database.
// A missing chain is made under a temporary name and renamed when it is complete. If another process
// is making the same chain, Get waits for it until ctx ends. about points to the system's own
// description of the chain, which make sets.
func (c Cache) Get(ctx context.Context, key string, about any, make func(dir string) error) (size int64, err error) {
	if size, err = c.get(ctx, filepath.Join(c.Dir, key), about, make); err != nil {
		err = fmt.Errorf("%s: cache of chains: %w", c.System, err)
	}
	return size, err
}

func (c Cache) get(ctx context.Context, dir string, about any, make func(dir string) error) (size int64, err error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return 0, err
	}
	unlock, err := testbed.AwaitLock(ctx, dir+locked) // the empty file is not deleted
	if err != nil {
		return 0, fmt.Errorf("wait for another process that makes this chain: %w", err)
	}
	defer unlock()
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		if size, err = Read(dir, about); err != nil {
			return 0, fmt.Errorf("%w; remove %s, and it is made again", err, dir)
		}
		now := time.Now()
		return size, os.Chtimes(dir, now, now) // for users who delete what has not been used for long
	}
	temporary := dir + building
	if err := errors.Join(os.RemoveAll(temporary), os.Mkdir(temporary, 0o755)); err != nil {
		return 0, err
	}
	if err = make(temporary); err == nil {
		size, err = describe(temporary, about)
	}
	if err == nil {
		err = os.Rename(temporary, dir)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(temporary))
	}
	return size, err
}

// describe writes the manifest of a new chain and returns the size of its database.
func describe(dir string, about any) (size int64, err error) {
	info, err := os.Stat(filepath.Join(dir, Database))
	if err != nil {
		return 0, err
	}
	text, err := json.MarshalIndent(manifest{about, info.Size()}, "", "\t")
	if err != nil {
		return 0, err
	}
	return info.Size(), os.WriteFile(filepath.Join(dir, manifestFile), append(text, '\n'), 0o644)
}

// Read reads the description of the chain in dir into about, and returns the size of its database.
// It fails if the size has changed since the chain was made.
func Read(dir string, about any) (size int64, err error) {
	m := manifest{About: about}
	text, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return 0, fmt.Errorf("the manifest of %s: %w", dir, err)
	}
	info, err := os.Stat(filepath.Join(dir, Database))
	if err == nil && info.Size() != m.Bytes {
		err = fmt.Errorf("%s has %d bytes instead of %d", filepath.Join(dir, Database), info.Size(), m.Bytes)
	}
	return m.Bytes, err
}
