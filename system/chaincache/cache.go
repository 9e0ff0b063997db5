// Package chaincache keeps what is costly to make and the same for all runs, the
// chains of systems whose nodes follow one, in a directory that any number of
// processes use at the same time.
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

	"golang.org/x/sys/unix"
)

const (
	// Database is the file of a chain that its maker writes.
	Database = "consensus.db"

	manifestFile = "manifest.json"
	building     = ".building" // ending of a chain that is being made, or was when its maker died
	locked       = ".lock"     // ending of the file that is locked while a chain is looked for or made
)

// Cache is a directory of chains, each in a directory named by all that it follows
// from: its spec, the form of its files, the versions of what made it.
type Cache struct {
	Dir    string
	System string // begins the errors
}

// manifest describes a chain beside its database.
type manifest struct {
	About    any       `json:"about"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
}

// Got is a chain that is there.
type Got struct {
	Dir   string
	Size  int64  // of its database, bytes
	Built bool   // it was made just now
	Note  string // why, where a damaged one was there; else empty
}

// Get is the chain that is there, if it is whole, or else one made now: under
// another name, and renamed when it is whole. Where another process is making the
// same chain, it waits for it, for as long as ctx lets it. about points to the
// system's own description of the chain, which make sets.
func (c Cache) Get(ctx context.Context, key string, about any, make func(dir string) error) (got Got, err error) {
	got.Dir = filepath.Join(c.Dir, key)
	if err := c.get(ctx, &got, about, make); err != nil {
		return got, fmt.Errorf("%s: cache of chains: %w", c.System, err)
	}
	return got, nil
}

func (c Cache) get(ctx context.Context, got *Got, about any, make func(dir string) error) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, got.Dir+locked)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Lstat(got.Dir); !errors.Is(err, fs.ErrNotExist) {
		wrong := got.check(about)
		if wrong == nil {
			now := time.Now()
			return os.Chtimes(got.Dir, now, now) // for users who remove what was not used for long
		}
		got.Note = fmt.Sprintf("made again, as the cached chain was damaged: %v", wrong)
	}
	temporary := got.Dir + building
	if err := errors.Join(os.RemoveAll(got.Dir), os.RemoveAll(temporary), os.Mkdir(temporary, 0o755)); err != nil {
		return err
	}
	got.Built = true
	if err = make(temporary); err == nil {
		got.Size, err = describe(temporary, about)
	}
	if err == nil {
		err = os.Rename(temporary, got.Dir)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(temporary))
	}
	return err
}

// describe writes the manifest of a chain that was made, and returns the size of its database.
func describe(dir string, about any) (size int64, err error) {
	info, err := os.Stat(filepath.Join(dir, Database))
	if err != nil {
		return 0, err
	}
	text, err := json.MarshalIndent(manifest{about, info.Size(), info.ModTime().UTC()}, "", "\t")
	if err != nil {
		return 0, err
	}
	return info.Size(), os.WriteFile(filepath.Join(dir, manifestFile), append(text, '\n'), 0o644)
}

// Open reads the description of the chain in dir into about.
func Open(dir string, about any) error { return (&manifest{About: about}).read(dir) }

func (m *manifest) read(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err == nil {
		err = json.Unmarshal(text, m)
	}
	if err != nil {
		err = fmt.Errorf("the manifest of %s: %w", dir, err)
	}
	return err
}

// check does as Open, and says what is wrong with the chain's database: it is as it was made when its size and its
// time are.
func (g *Got) check(about any) error {
	m, path := manifest{About: about}, filepath.Join(g.Dir, Database)
	if err := m.read(g.Dir); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if g.Size = info.Size(); g.Size != m.Bytes || !info.ModTime().Equal(m.Modified) {
		return fmt.Errorf("%s has %d bytes of %v instead of %d of %v", path, g.Size, info.ModTime(), m.Bytes,
			m.Modified)
	}
	return nil
}

// lock waits for the file's lock, which ends with the process that holds it. The
// file stays: it is empty.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			return func() { f.Close() }, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("another process is making this chain and holds %s: %w", path, context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
