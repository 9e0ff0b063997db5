package chain

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

// StoreFile is the name of a node's chain database in its directory.
const StoreFile = "consensus.db"

const (
	manifestFile = "manifest.json"
	building     = ".building" // ending of a chain that is being made, or was when its maker died
	locked       = ".lock"     // ending of the file that is locked while a chain is looked for or made
)

// kept describes a chain beside its database.
type kept struct {
	About    Manifest  `json:"about"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
	SHA256   string    `json:"sha256"`
}

// get is the chain that is there, if it is whole, or else one made now: under
// another name, and renamed when it is whole. Where another process is making the
// same chain, it waits for it, for as long as ctx lets it.
func (c Cache) get(ctx context.Context, key string, make func(dir string) (Manifest, error)) (*Chain, error) {
	fail := func(errs ...error) (*Chain, error) {
		return nil, fmt.Errorf("sia-chain: cache of chains: %w", errors.Join(errs...))
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fail(err)
	}
	dir, note := filepath.Join(c.Dir, key), ""
	unlock, err := lock(ctx, dir+locked)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		there, wrong := check(ctx, dir)
		if wrong == nil {
			now := time.Now()
			_ = os.Chtimes(dir, now, now) // for users who remove what was not used for long
			return there, nil
		}
		if ctx.Err() != nil {
			return fail(wrong) // the chain may be whole: it was not read
		}
		note = fmt.Sprintf("made again, as the cached chain was damaged: %v", wrong)
	}
	temporary := dir + building
	if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(temporary), os.Mkdir(temporary, 0o755)); err != nil {
		return fail(err)
	}
	about, err := make(temporary)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(temporary))
	}
	size, err := describe(ctx, temporary, about)
	if err := errors.Join(err, os.Rename(temporary, dir)); err != nil {
		return fail(err, os.RemoveAll(temporary))
	}
	return &Chain{Manifest: about, Dir: dir, Size: size, Built: true, Note: note}, nil
}

// describe writes the manifest of a chain that was made.
func describe(ctx context.Context, dir string, about Manifest) (size int64, err error) {
	path := filepath.Join(dir, StoreFile)
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	k := kept{About: about, Bytes: info.Size(), Modified: info.ModTime().UTC()}
	if k.SHA256, err = sum(ctx, path); err != nil {
		return 0, err
	}
	text, err := json.MarshalIndent(k, "", "\t")
	if err != nil {
		return 0, err
	}
	return k.Bytes, os.WriteFile(filepath.Join(dir, manifestFile), append(text, '\n'), 0o644)
}

// read reads the manifest of the chain in dir.
func read(dir string) (k kept, err error) {
	path := filepath.Join(dir, manifestFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return k, err
	}
	if err := json.Unmarshal(text, &k); err != nil {
		return k, fmt.Errorf("the manifest %s is damaged: %v", path, err)
	}
	return k, nil
}

// check is the chain in dir, or what is wrong with its database, which is read only where
// its time is not that of its making, as after copying.
func check(ctx context.Context, dir string) (*Chain, error) {
	k, err := read(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, StoreFile)
	switch info, err := os.Stat(path); {
	case err != nil:
		return nil, err
	case info.Size() != k.Bytes:
		return nil, fmt.Errorf("%s has %d bytes instead of %d", path, info.Size(), k.Bytes)
	case info.ModTime().Equal(k.Modified):
		return &Chain{Manifest: k.About, Dir: dir, Size: k.Bytes}, nil
	}
	switch is, err := sum(ctx, path); {
	case err != nil:
		return nil, err
	case is != k.SHA256:
		return nil, fmt.Errorf("%s is not what was made", path)
	}
	return &Chain{Manifest: k.About, Dir: dir, Size: k.Bytes}, nil
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
