// Package chaincache keeps what is costly to make and the same for all runs, the
// chains of systems whose nodes follow one, in a directory that any number of
// processes use at the same time.
package chaincache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// What a cache holds beside its chains, whose directories are named by their keys.
const (
	building = ".building" // ending of a chain that is being made, or was when its maker died
	damaged  = ".damaged"  // ending of the last chain of this key that was found damaged
	locked   = ".lock"     // ending of the file that is locked while a chain is looked for or made
)

// Cache is a directory of chains, each in a directory named by all that it follows
// from: its spec, the form of its files, the versions of what made it. Nothing is
// removed from it but what an interrupted or damaged chain leaves behind; see
// [Cache.List] and [Cache.Remove].
type Cache struct {
	Dir    string
	System string // begins the errors
}

// Want is a chain that is looked for.
type Want struct {
	Key string // a file name
	// Look says why the chain in dir cannot be used; nil: it can.
	Look func(dir string) error
	// Make makes the chain in dir, which is empty. Its errors are handed on as they
	// are.
	Make func(dir string) error
}

// Got is a chain that is there.
type Got struct {
	Dir   string
	Built bool   // it was made just now
	Note  string // why, where a damaged one was there; else empty
}

// Get is the chain that is there, if it is whole, or else one made now: under
// another name, and renamed when it is whole. Where another process is making the
// same chain, it waits for it, for as long as ctx lets it.
func (c Cache) Get(ctx context.Context, w Want) (got Got, err error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return got, c.failed(err)
	}
	dir := filepath.Join(c.Dir, w.Key)
	unlock, err := lock(ctx, dir+locked)
	if err != nil {
		return got, c.failed(err)
	}
	defer unlock()
	found, why, err := c.find(ctx, dir, w)
	if found || err != nil {
		return Got{Dir: dir}, err
	}
	temporary := dir + building
	if err := errors.Join(os.RemoveAll(temporary), os.Mkdir(temporary, 0o755)); err != nil {
		return got, c.failed(err)
	}
	if err := w.Make(temporary); err != nil {
		return got, errors.Join(err, os.RemoveAll(temporary))
	}
	if err := os.Rename(temporary, dir); err != nil {
		return got, c.failed(errors.Join(err, os.RemoveAll(temporary)))
	}
	return Got{Dir: dir, Built: true, Note: why}, nil
}

// find looks for a chain. One that is not whole is moved aside, in the place of the
// last one that was, and why says so.
func (c Cache) find(ctx context.Context, dir string, w Want) (found bool, why string, err error) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, "", nil
	}
	wrong := w.Look(dir)
	if wrong == nil {
		now := time.Now()
		os.Chtimes(dir, now, now) // only List's order is lost by an error
		return true, "", nil
	}
	if ctx.Err() != nil { // it may be why
		return false, "", c.failed(context.Cause(ctx))
	}
	said, aside := strings.TrimPrefix(wrong.Error(), c.System+": "), dir+damaged
	if err := errors.Join(os.RemoveAll(aside), os.Rename(dir, aside)); err != nil {
		return false, "", c.failed(fmt.Errorf("the chain in %s is damaged (%s) and cannot be moved aside: %w", dir, said, err))
	}
	return false, fmt.Sprintf("made again, as the cached chain is damaged: %s; it is kept in %s", said, aside), nil
}

func (c Cache) failed(err error) error { return fmt.Errorf("%s: cache of chains: %w", c.System, err) }
