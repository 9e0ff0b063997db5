package siad

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"go.sia.tech/core/types"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/chaincache"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// layout is of what is kept of a chain: the consensus database of a siad that has
// it. Its first blocks are the same for all chains, because they are dear: see
// nonces.go. A chain of another layout is made again.
const layout = 2

// kept describes a chain that is kept.
type kept struct {
	Tip   string `json:"tip"`
	Bytes int64  `json:"bytes"` // of its blocks
}

// chainDir is where the chain of that ID is kept.
func (c *chains) chainDir(id string) string { return filepath.Join(c.cache, id) }

// chainID names a chain by all that it follows from; the part before the sum is for
// readers.
func (c *chains) chainID(s system.ChainSpec) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "layout %d, %s, %+v", layout, c.version, s))
	return fmt.Sprintf("siad-%d-blocks-seed-%d-%x", s.Blocks, s.Seed, sum[:8])
}

// Chain implements system.Chains.
func (c *chains) Chain(ctx context.Context, spec system.ChainSpec, say func(string)) (system.Chain, error) {
	if spec.Blocks < 1 {
		return system.Chain{}, fmt.Errorf("siad: a chain of %d blocks: it needs one at least", spec.Blocks)
	}
	if ctx.Err() != nil {
		return system.Chain{}, fmt.Errorf("siad: chain: %w", context.Cause(ctx))
	}
	spec.Form = "v1" // others, and transactions, are refused before (system.ChainLimits)
	id := c.chainID(spec)
	var k kept
	got, err := chaincache.Cache{Dir: c.cache, System: name}.Get(ctx, id, &k, func(dir string) (err error) {
		if k, err = c.makeChain(ctx, dir, spec, say); err != nil {
			err = fmt.Errorf("siad: make a chain of %d blocks: %w", spec.Blocks, err)
		}
		return err
	})
	if err != nil {
		return system.Chain{}, err
	}
	return system.Chain{
		ID: id, Tip: k.Tip, Height: int64(spec.Blocks), Bytes: k.Bytes, Built: got.Built, Note: got.Note,
		// The file grows in steps while it is written, and other modules have
		// databases and logs of their own.
		Disk: 2*got.Size + 64<<20,
	}, nil
}

// makeChain mines into a siad of its own, which is ended, and keeps its database in
// dir.
func (c *chains) makeChain(ctx context.Context, dir string, spec system.ChainSpec, say func(string)) (k kept,
	err error) {
	n := &follower{c: c, host: c.d.Hosts[0], role: "mine"}
	root, files := filepath.Join(c.d.DirOf(n.host), n.role), n.host.Files()
	defer func() { err = errors.Join(err, files.RemoveAll(root)) }()
	defer func() { err = errors.Join(err, n.Kill(context.WithoutCancel(ctx))) }() // nothing to do when it was halted
	d, err := n.start(ctx, launch{bin: c.bin, role: "mine", root: root, modules: "gctwm", alone: true})
	if err != nil {
		return k, err
	}
	if k.Tip, k.Bytes, err = mine(ctx, d.api, spec, say); err != nil {
		return k, err
	}
	if err := n.Halt(ctx); err != nil { // in its own way: the database is closed
		return k, err
	}
	return k, copyFile(ctx, files, filepath.Join(root, "consensus"), testbed.LocalFiles{}, dir)
}

// mine makes the blocks and hands them to siad, one after the other; it returns
// the last one's identity, and the bytes of all.
func mine(ctx context.Context, a *api, spec system.ChainSpec, say func(string)) (tip string, size int64, err error) {
	now, err := a.consensus(ctx)
	if err != nil {
		return "", 0, err
	}
	// The last block is always of the seed, so that no two chains are the same.
	common := min(int64(spec.Blocks)-1, cheap)
	seeded := types.Address(types.HashBytes(fmt.Appendf(nil, "plimsoll chain %d", spec.Seed)))
	known := nonces(now.tip)
	said := time.Now()
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
			if now.height == 0 {
				say("the first blocks of this build are difficult: mining them takes minutes")
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
	said := a.Upload(ctx, http.MethodPost, "/miner/block", nil, size, &buf)
	if now, err = a.consensus(ctx); err != nil {
		return 0, now, err
	}
	if now.tip != b.ID() {
		return 0, now, errors.Join(errors.New("siad did not take it (POST /miner/block, which it has since 1.4.10)"),
			said)
	}
	return size, now, nil
}

// copyFile copies the database of a chain from a directory of one host to that of another.
func copyFile(ctx context.Context, files testbed.Files, from string, files2 testbed.Files, to string) error {
	in, err := files.Open(filepath.Join(from, chaincache.Database))
	if err != nil {
		return err
	}
	defer in.Close()
	return files2.Write(ctx, filepath.Join(to, chaincache.Database), 0o600, in)
}
