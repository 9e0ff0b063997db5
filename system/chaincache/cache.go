// Package chaincache keeps what is costly to make and the same for all runs, the
// chains of systems whose nodes follow one, in a directory that any number of
// processes use at the same time.
package chaincache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	SHA256   string    `json:"sha256"`
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
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return got, c.failed(err)
	}
	got.Dir = filepath.Join(c.Dir, key)
	unlock, err := lock(ctx, got.Dir+locked)
	if err != nil {
		return got, c.failed(err)
	}
	defer unlock()
	if _, err := os.Lstat(got.Dir); !errors.Is(err, fs.ErrNotExist) {
		wrong := Check(ctx, got.Dir, about)
		if wrong == nil {
			now := time.Now()
			_ = os.Chtimes(got.Dir, now, now) // for users who remove what was not used for long
			return c.sized(got)
		}
		if ctx.Err() != nil {
			return got, c.failed(wrong) // the chain may be whole: it was not read
		}
		got.Note = fmt.Sprintf("made again, as the cached chain was damaged: %v", wrong)
	}
	temporary := got.Dir + building
	if err := errors.Join(os.RemoveAll(got.Dir), os.RemoveAll(temporary), os.Mkdir(temporary, 0o755)); err != nil {
		return got, c.failed(err)
	}
	if err := make(temporary); err != nil {
		return got, errors.Join(err, os.RemoveAll(temporary))
	}
	if err := errors.Join(describe(ctx, temporary, about), os.Rename(temporary, got.Dir)); err != nil {
		return got, c.failed(errors.Join(err, os.RemoveAll(temporary)))
	}
	got.Built = true
	return c.sized(got)
}

func (c Cache) sized(got Got) (Got, error) {
	info, err := os.Stat(filepath.Join(got.Dir, Database))
	if err != nil {
		return got, c.failed(err)
	}
	got.Size = info.Size()
	return got, nil
}

func (c Cache) failed(err error) error { return fmt.Errorf("%s: cache of chains: %w", c.System, err) }

// describe writes the manifest of a chain that was made.
func describe(ctx context.Context, dir string, about any) error {
	path := filepath.Join(dir, Database)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	m := manifest{About: about, Bytes: info.Size(), Modified: info.ModTime().UTC()}
	if m.SHA256, err = sum(ctx, path); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, manifestFile), append(text, '\n'), 0o644)
}

// Open reads the description of the chain in dir into about.
func Open(dir string, about any) (m manifest, err error) {
	path := filepath.Join(dir, manifestFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	m.About = about
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("the manifest %s is damaged: %v", path, err)
	}
	return m, nil
}

// Check does as Open, and says what is wrong with the chain's database. It is read
// only where its time is not that of its making, as after copying.
func Check(ctx context.Context, dir string, about any) error {
	m, err := Open(dir, about)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, Database)
	switch info, err := os.Stat(path); {
	case err != nil:
		return err
	case info.Size() != m.Bytes:
		return fmt.Errorf("%s has %d bytes instead of %d", path, info.Size(), m.Bytes)
	case info.ModTime().Equal(m.Modified):
		return nil
	}
	switch is, err := sum(ctx, path); {
	case err != nil:
		return err
	case is != m.SHA256:
		return fmt.Errorf("%s is not what was made", path)
	}
	return nil
}

// sum is the SHA-256 of a file.
func sum(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return "", fmt.Errorf("read %s: %w", path, context.Cause(ctx))
		}
		switch _, err := io.CopyN(h, f, 16<<20); {
		case errors.Is(err, io.EOF):
			return hex.EncodeToString(h.Sum(nil)), nil
		case err != nil:
			return "", fmt.Errorf("read %s: %w", path, err)
		}
	}
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
