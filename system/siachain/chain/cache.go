package chain

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system/chaincache"
)

// Cache is a directory of chains, each in a directory named by what it follows
// from: its spec, the format and the versions of the libraries. See
// [chaincache.Cache].
type Cache struct{ Dir string }

func (c Cache) kept() chaincache.Cache { return chaincache.Cache{Dir: c.Dir, System: "sia-chain"} }

// Chain is the chain of the spec: the one that is there, if it is whole, or else
// one made now, which takes as long as it is long. A chain is looked at by size and
// time of its store and not read, unless that time is another.
//
// Where another process is making the same chain, it waits for it, for as long as
// ctx lets it.
func (c Cache) Chain(ctx context.Context, s Spec, say Progress) (chain *Chain, err error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	older := ""
	got, err := c.kept().Get(ctx, chaincache.Want{
		Key: key(s, Libraries()),
		Look: func(dir string) (err error) {
			chain, err = whole(ctx, dir, s)
			return err
		},
		Make: func(dir string) (err error) {
			older = c.older(s)
			chain, err = build(ctx, dir, s, say)
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	chain.Dir, chain.Built, chain.Note = got.Dir, got.Built, cmp.Or(got.Note, older)
	return chain, nil
}

// whole opens the chain in dir if it is that of the spec, and whole.
func whole(ctx context.Context, dir string, s Spec) (*Chain, error) {
	found, err := Open(dir)
	if err == nil && (found.Spec != s || found.Versions != Libraries() || found.Format != format) {
		err = errors.New("its manifest describes another chain")
	}
	if err == nil {
		err = found.look(ctx)
	}
	return found, err
}

// older is a note on a chain of the same spec that another version made.
func (c Cache) older(s Spec) string {
	all, err := c.kept().List()
	if err != nil {
		return "" // a note is not worth an error
	}
	now := Libraries()
	for _, entry := range slices.Backward(all) {
		if entry.State != chaincache.Whole {
			continue
		}
		e, err := Open(entry.Path)
		if err != nil || e.Spec != s || e.Versions == now && e.Format == format {
			continue
		}
		var what []string
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

// build makes the chain in dir, which is empty.
func build(ctx context.Context, dir string, s Spec, say Progress) (*Chain, error) {
	began := time.Now()
	genesis := s.Genesis()
	// what is lost by a power failure is a temporary directory
	store, err := OpenStore(dir, s.Network(), genesis, StoreOptions{NoSync: true, MapFreelist: true})
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
	c := &Chain{Dir: dir, Manifest: Manifest{
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
	if err := os.WriteFile(filepath.Join(dir, manifestFile), append(text, '\n'), 0o644); err != nil {
		return nil, fmt.Errorf("sia-chain: %w", err)
	}
	return c, nil
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
