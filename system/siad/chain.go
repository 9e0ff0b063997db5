package siad

import (
	"bytes"
	"cmp"
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
	"slices"
	"time"

	"go.sia.tech/core/types"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/chaincache"
)

// A chain is kept as the consensus database of a siad that has it, with a
// manifest. Its first blocks are the same for all chains, because they are dear:
// see nonces.go.
const (
	layout       = 1 // of what is kept; another one is made again
	manifestFile = "manifest.json"
	databaseFile = "consensus.db"
)

// manifest describes a chain that is kept.
type manifest struct {
	Layout int              `json:"layout"`
	Siad   string           `json:"siad"` // that made it
	Spec   system.ChainSpec `json:"spec"`
	Tip    string           `json:"tip"`
	Bytes  int64            `json:"bytes"`
	Size   int64            `json:"size"`   // of the database, bytes
	SHA256 string           `json:"sha256"` // of it
}

// chainDir is where the chain of that ID is kept.
func (c *chains) chainDir(id string) string { return filepath.Join(c.cache, id) }

// chainID names a chain by all that it follows from; the part before the sum is for
// readers.
func (c *chains) chainID(s system.ChainSpec) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "layout %d, %s, %+v", layout, c.version, s))
	return fmt.Sprintf("siad-%d-blocks-seed-%d-%x", s.Blocks, s.Seed, sum[:8])
}

// check says what is wrong with a spec.
func checkSpec(s system.ChainSpec) error {
	switch {
	case s.Blocks < 1:
		return fmt.Errorf("siad: a chain of %d blocks: it needs one at least", s.Blocks)
	case s.Form != "" && s.Form != "v1":
		return fmt.Errorf("siad: blocks of form %q: siad's are of before version 2; use form: v1", s.Form)
	case s.Transactions != 0:
		return fmt.Errorf("siad: %d transactions in a block: its chain is mined, with no transactions of our choice; use transactions: 0, form: v1", s.Transactions)
	}
	return nil
}

// Chain implements system.Chains.
func (c *chains) Chain(ctx context.Context, spec system.ChainSpec, say func(string)) (system.Chain, error) {
	if err := checkSpec(spec); err != nil {
		return system.Chain{}, err
	}
	if ctx.Err() != nil {
		return system.Chain{}, fmt.Errorf("siad: chain: %w", context.Cause(ctx))
	}
	spec.Form = "v1"
	id, older := c.chainID(spec), ""
	var m manifest
	got, err := c.kept().Get(ctx, chaincache.Want{
		Key: id,
		Look: func(dir string) (err error) {
			m, err = c.whole(dir, spec)
			return err
		},
		Make: func(dir string) (err error) {
			older = c.older(spec)
			if m, err = c.makeChain(ctx, dir, spec, say); err != nil {
				err = fmt.Errorf("siad: make a chain of %d blocks: %w", spec.Blocks, err)
			}
			return err
		},
	})
	if err != nil {
		return system.Chain{}, err
	}
	chain := m.chain(id)
	chain.Built, chain.Note = got.Built, cmp.Or(got.Note, older)
	return chain, nil
}

func (c *chains) kept() chaincache.Cache { return chaincache.Cache{Dir: c.cache, System: name} }

// older is a note on a chain of the same spec that another siad made.
func (c *chains) older(spec system.ChainSpec) string {
	all, err := c.kept().List()
	if err != nil {
		return "" // a note is not worth an error
	}
	for _, e := range slices.Backward(all) {
		var m manifest
		b, err := os.ReadFile(filepath.Join(e.Path, manifestFile))
		if e.State == chaincache.Whole && err == nil && json.Unmarshal(b, &m) == nil && m.Spec == spec {
			return fmt.Sprintf("made again, as the chain in %s is of siad %s, layout %d, and this is %s, layout %d", e.Path, m.Siad, m.Layout, c.version, layout)
		}
	}
	return ""
}

func (m manifest) chain(id string) system.Chain {
	return system.Chain{
		ID: id, Tip: m.Tip, Height: int64(m.Spec.Blocks), Bytes: m.Bytes,
		// The file grows in steps while it is written, and other modules have
		// databases and logs of their own.
		Disk: 2*m.Size + 64<<20,
	}
}

// whole is the manifest of the chain in dir, if it is that of the spec, and whole.
func (c *chains) whole(dir string, spec system.ChainSpec) (m manifest, err error) {
	b, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return m, fmt.Errorf("its manifest is damaged: %w", err)
	}
	if m.Layout != layout || m.Siad != c.version || m.Spec != spec {
		return m, fmt.Errorf("it is of %s, layout %d, not of %s, layout %d", m.Siad, m.Layout, c.version, layout)
	}
	sum, size, err := hashFile(filepath.Join(dir, databaseFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, errors.New("its database is not there")
	}
	if err != nil {
		return m, err
	}
	if sum != m.SHA256 || size != m.Size {
		return m, errors.New("its database is damaged: not the bytes that were written")
	}
	return m, nil
}

func hashFile(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// makeChain mines into a siad of its own, which is ended, and keeps its database in
// dir.
func (c *chains) makeChain(ctx context.Context, dir string, spec system.ChainSpec, say func(string)) (m manifest, err error) {
	root, err := os.MkdirTemp(c.dir, "siad-mine-")
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	n := &follower{c: c, host: c.hosts[0], role: "mine"}
	defer func() { err = errors.Join(err, n.Kill(context.WithoutCancel(ctx))) }() // nothing to do when it was halted
	d, err := n.start(ctx, launch{bin: c.bin, role: "mine", root: root, modules: "gctwm", alone: true})
	if err != nil {
		return m, err
	}
	m = manifest{Layout: layout, Siad: c.version, Spec: spec}
	if m.Tip, m.Bytes, err = mine(ctx, d.api, spec, say); err != nil {
		return m, err
	}
	if err := n.Halt(ctx); err != nil { // in its own way: the database is closed
		return m, err
	}
	from := filepath.Join(root, "consensus", databaseFile)
	if m.SHA256, m.Size, err = hashFile(from); err != nil {
		return m, err
	}
	if err := copyFile(from, filepath.Join(dir, databaseFile)); err != nil {
		return m, err
	}
	b, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return m, err
	}
	return m, os.WriteFile(filepath.Join(dir, manifestFile), b, 0o644)
}

// mine makes the blocks and hands them to siad, one after the other; it tells the
// last one's identity, and the bytes of all.
func mine(ctx context.Context, a *api, spec system.ChainSpec, say func(string)) (tip string, size int64, err error) {
	if err := isDev(ctx, a); err != nil {
		return "", 0, err
	}
	now, err := a.consensus(ctx)
	if err != nil {
		return "", 0, err
	}
	// The last block is always of the seed, so that no two chains are the same.
	common := min(int64(spec.Blocks)-1, cheap)
	seeded := types.Address(types.HashBytes(fmt.Appendf(nil, "plimsoll chain %d", spec.Seed)))
	known := nonces(now.tip)
	warned, said := false, time.Now()
	for now.height < int64(spec.Blocks) {
		target, err := now.target()
		if err != nil {
			return "", 0, err
		}
		b := now.template(seeded)
		if now.height < common {
			b = now.template(types.Address{})
		}
		if now.height < int64(len(known)) {
			b.Nonce = known[now.height]
		}
		if !solved(&b, target) {
			if !warned {
				warned = true
				if left := seconds(ahead(hashes(target), now.height, int64(spec.Blocks))); left > 2*time.Second {
					say(fmt.Sprintf("the next blocks are difficult: about %v of mining", left))
				}
			}
			if err := solve(ctx, &b, target); err != nil {
				return "", 0, err
			}
		}
		n, next, err := a.submit(ctx, b)
		if err != nil {
			return "", 0, fmt.Errorf("block %d: %w", now.height+1, err)
		}
		now, size = next, size+n
		if time.Since(said) > 2*time.Second {
			said = time.Now()
			say(fmt.Sprintf("%d of %d blocks are made", now.height, spec.Blocks))
		}
	}
	return now.tip.String(), size, nil
}

// submit hands a block to siad and sees that it has become the last one. Siad
// also says 400 to a block that it has taken: its miner then wants an address of
// the wallet, which is locked, and may stay so.
func (a *api) submit(ctx context.Context, b types.Block) (size int64, now consensusState, err error) {
	var buf bytes.Buffer
	e := types.NewEncoder(&buf)
	types.V1Block(b).EncodeTo(e)
	if err := e.Flush(); err != nil {
		return 0, now, err
	}
	size = int64(buf.Len())
	said := a.upload(ctx, "/miner/block", nil, size, &buf)
	if now, err = a.consensus(ctx); err != nil {
		return 0, now, err
	}
	if now.tip != b.ID() {
		return 0, now, errors.Join(errors.New("siad did not take it (POST /miner/block, which it has since 1.4.10)"), said)
	}
	return size, now, nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
