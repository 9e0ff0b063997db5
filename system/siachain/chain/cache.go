package chain

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// What a cache holds beside its chains, whose directories are named by their keys.
const (
	building = ".building" // ending of a chain that is being made, or was when its maker died
	damaged  = ".damaged"  // ending of the last chain of this key that was found damaged
	locked   = ".lock"     // ending of the file that is locked while a chain is looked for or made
)

// Cache is a directory of chains, each in a directory named by what it follows
// from: its spec, the format and the versions of the libraries. Any number of
// processes may use it at the same time. Nothing is removed from it but what an
// interrupted or damaged chain leaves behind; see [Cache.List] and [Cache.Remove].
type Cache struct{ Dir string }

// Chain is the chain of the spec: the one that is there, if it is whole, or else
// one made now, which takes as long as it is long. A chain is looked at by size and
// time of its store and not read; see [Chain.Verify].
//
// Where another process is making the same chain, it waits for it, for as long as
// ctx lets it.
func (c Cache) Chain(ctx context.Context, s Spec, say Progress) (*Chain, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("sia-chain: cache of chains: %w", err)
	}
	dir := filepath.Join(c.Dir, key(s, Libraries()))
	unlock, err := lock(ctx, dir+locked)
	if err != nil {
		return nil, fmt.Errorf("sia-chain: cache of chains: %w", err)
	}
	defer unlock()

	found, why := c.find(ctx, dir, s)
	if found != nil {
		return found, nil
	}
	if err := ctx.Err(); err != nil { // it may be why none was found
		return nil, fmt.Errorf("sia-chain: cache of chains: %w", context.Cause(ctx))
	}
	if why == "" {
		why = c.older(s)
	}
	made, err := build(ctx, dir, s, say)
	if err != nil {
		return nil, err
	}
	made.Built, made.Note = true, why
	return made, nil
}

// find opens the chain in dir. A chain that is not whole is moved aside, and why
// says so.
func (c Cache) find(ctx context.Context, dir string, s Spec) (found *Chain, why string) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, ""
	}
	found, err := Open(dir)
	if err == nil && (found.Spec != s || found.Versions != Libraries() || found.Format != format) {
		err = fmt.Errorf("its manifest describes another chain")
	}
	if err == nil {
		err = found.look(ctx)
	}
	if err == nil {
		touch(dir)
		return found, ""
	}
	if ctx.Err() != nil {
		return nil, ""
	}
	aside := dir + damaged
	if err := errors.Join(os.RemoveAll(aside), os.Rename(dir, aside)); err != nil {
		return nil, fmt.Sprintf("the cached chain is damaged (%v) and could not be kept: %v", err, err)
	}
	return nil, fmt.Sprintf("made again, as the cached chain is damaged: %v; it is kept in %s", strings.TrimPrefix(err.Error(), "sia-chain: "), aside)
}

// older is a note on a chain of the same spec that another version made.
func (c Cache) older(s Spec) string {
	all, err := c.List()
	if err != nil {
		return "" // a note is not worth an error
	}
	for _, e := range slices.Backward(all) {
		if e.Chain == nil || e.Spec != s || e.Versions == Libraries() && e.Format == format {
			continue
		}
		var what []string
		now := Libraries()
		for _, v := range []struct{ name, was, is string }{
			{"format", fmt.Sprint(e.Format), fmt.Sprint(format)},
			{"core", e.Versions.Core, now.Core},
			{"coreutils", e.Versions.Coreutils, now.Coreutils},
			{"bbolt", e.Versions.Database, now.Database},
		} {
			if v.was != v.is {
				what = append(what, fmt.Sprintf("%s %s instead of %s", v.name, v.was, v.is))
			}
		}
		return fmt.Sprintf("made again, as the cached chain is of another version: %s; that one is still in %s", strings.Join(what, ", "), e.Dir)
	}
	return ""
}

// build makes the chain under another name, and renames it when it is whole. What
// an interrupted build of the same chain has left is removed before.
func build(ctx context.Context, dir string, s Spec, say Progress) (_ *Chain, err error) {
	temporary := dir + building
	if err := errors.Join(os.RemoveAll(temporary), os.Mkdir(temporary, 0o755)); err != nil {
		return nil, fmt.Errorf("sia-chain: cache of chains: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temporary))
		}
	}()
	began := time.Now()
	genesis := s.Genesis()
	// what is lost by a power failure is a temporary directory
	store, err := OpenStore(temporary, s.Network(), genesis, StoreOptions{NoSync: true, MapFreelist: true})
	if err != nil {
		return nil, err
	}
	m, err := generate(ctx, s, store.store, say)
	if err == nil {
		err = store.file.db.Sync()
	}
	if err := errors.Join(err, store.Close()); err != nil {
		return nil, err
	}
	c := &Chain{Dir: temporary, Manifest: Manifest{
		Format:       format,
		Spec:         s,
		Versions:     Libraries(),
		Genesis:      genesis.ID(),
		Tip:          m.tip,
		Bytes:        m.bytes,
		Transactions: m.transactions,
	}}
	info, err := os.Stat(c.store())
	if err != nil {
		return nil, fmt.Errorf("sia-chain: %w", err)
	}
	c.Store = File{Bytes: info.Size(), Modified: info.ModTime().UTC()}
	if c.Store.SHA256, err = sum(ctx, c.store()); err != nil {
		return nil, fmt.Errorf("sia-chain: %w", err)
	}
	c.Took = time.Since(began).Seconds()
	text, err := json.MarshalIndent(c.Manifest, "", "\t")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(temporary, manifestFile), append(text, '\n'), 0o644); err != nil {
		return nil, fmt.Errorf("sia-chain: %w", err)
	}
	if err := os.Rename(temporary, dir); err != nil {
		return nil, fmt.Errorf("sia-chain: %w", err)
	}
	c.Dir = dir
	return c, nil
}

// Entry is something in a cache.
type Entry struct {
	*Chain           // nil: damaged, or not finished
	Name   string    // in the directory, for Remove
	Path   string    // of it
	Used   time.Time // last
	Size   int64     // bytes on the disk
}

// List is everything in the cache, the least recently used first.
func (c Cache) List() ([]Entry, error) {
	all, err := os.ReadDir(c.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("sia-chain: cache of chains: %w", err)
	}
	var entries []Entry
	for _, d := range all {
		info, err := d.Info()
		if err != nil || !d.IsDir() {
			continue // removed meanwhile, or a lock
		}
		e := Entry{Name: d.Name(), Path: filepath.Join(c.Dir, d.Name()), Used: info.ModTime()}
		if !strings.HasSuffix(e.Name, building) && !strings.HasSuffix(e.Name, damaged) {
			e.Chain, _ = Open(e.Path)
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

// Remove removes what List calls name, unless it is being made. Processes that
// serve a chain meanwhile keep its file until they end.
func (c Cache) Remove(ctx context.Context, name string) error {
	if name == "" || name == "." || name == ".." || name != filepath.Base(name) || strings.HasSuffix(name, locked) {
		return fmt.Errorf("sia-chain: there is no chain %q in %s", name, c.Dir)
	}
	path := filepath.Join(c.Dir, name)
	if _, err := os.Lstat(path); err != nil {
		return fmt.Errorf("sia-chain: %w", err)
	}
	of := strings.TrimSuffix(strings.TrimSuffix(path, building), damaged)
	unlock, err := lock(ctx, of+locked)
	if err != nil {
		return fmt.Errorf("sia-chain: cache of chains: %w", err)
	}
	defer unlock()
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("sia-chain: %w", err)
	}
	return nil
}

// key names a chain by all that it follows from; the part before the sum is for
// readers.
func key(s Spec, v Versions) string {
	text, _ := json.Marshal(struct { // of numbers and texts: no error
		Format   int
		Spec     Spec
		Versions Versions
	}{format, s, v})
	name := fmt.Sprintf("%s-%dx%d-seed%d", s.Form, s.Blocks, s.Transactions, s.Seed)
	if s.Foreign {
		name += "-foreign"
	}
	return fmt.Sprintf("%s-%x", name, sha256.Sum256(text))[:len(name)+1+16]
}

// touch says that the chain is in use.
func touch(dir string) {
	now := time.Now()
	os.Chtimes(dir, now, now) // only List's order is lost by an error
}

// lock waits for the file's lock, which ends with the process that holds it.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("another process is making this chain and holds %s: %w", path, context.Cause(ctx))
		case <-again.C:
		}
	}
}
