package siad

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"go.sia.tech/core/types"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/chaincache"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// chains implements system.Chains with one siad per host.
type chains struct {
	system.Cluster
	build
	d     system.Deployment
	cache string // directory of the cached chains
}

// startChains allocates a node on each host; it starts no process.
func startChains(ctx context.Context, d system.Deployment, b build) (_ *chains, err error) {
	identity := map[string]string{
		"binary": b.path, "version": "siad " + b.version, "network": "private", "peers": "modules gc, --no-bootstrap",
		"fresh node": "in initial download, from the peers that it is connected to",
	}
	c := &chains{build: b, d: d, cache: cmp.Or(d.Cache, filepath.Join(d.DirOf(d.Client), "chains"))}
	c.Cluster, err = group.Start(ctx, len(d.Hosts), 1, identity, func(ctx context.Context, i int) (group.Node, error) {
		return c.node(ctx, i, "node-"+strconv.Itoa(i+1))
	})
	return c, err
}

func (c *chains) node(ctx context.Context, host int, role string) (*follower, error) {
	d, err := newDaemon(ctx, c.d, c.d.Hosts[host], role)
	return &follower{daemon: d, c: c, home: d.Daemon.Dir}, err
}

// layout is the version of a cached chain's layout: the consensus database of a siad that has the
// chain. The first blocks are the same in all chains, because they are expensive to mine (see
// nonces). A chain with another layout is built again.
const layout = 2

// kept describes a cached chain.
type kept struct {
	Tip   string `json:"tip"`
	Bytes int64  `json:"bytes"` // total size of its blocks
}

// Chain implements system.Chains. The chain's ID depends on everything that determines its content;
// the part before the hash is for human readers.
func (c *chains) Chain(ctx context.Context, spec system.ChainSpec, say func(string)) (system.Chain, error) {
	if ctx.Err() != nil {
		return system.Chain{}, fmt.Errorf("siad: chain: %w", context.Cause(ctx))
	}
	spec.Form = "v1" // system.ChainLimits rules out other forms and transactions
	sum := sha256.Sum256(fmt.Appendf(nil, "layout %d, %s, %+v", layout, c.version, spec))
	id := fmt.Sprintf("siad-%d-blocks-seed-%d-%x", spec.Blocks, spec.Seed, sum[:8])
	var k kept
	size, err := chaincache.Cache{Dir: c.cache, System: name}.Get(ctx, id, &k, func(dir string) (err error) {
		k, err = c.makeChain(ctx, dir, spec, say)
		return err
	})
	return system.Chain{
		ID: id, Tip: k.Tip, Height: int64(spec.Blocks), Bytes: k.Bytes,
		// The file grows in steps while siad writes it, and other modules have their own databases
		// and logs.
		Disk: 2*size + 64<<20,
	}, err
}

// makeChain mines the chain with a temporary siad, and stores its database in dir.
func (c *chains) makeChain(ctx context.Context, dir string, spec system.ChainSpec, say func(string)) (k kept,
	err error) {
	n, err := c.node(ctx, 0, "mine")
	if err != nil {
		return k, err
	}
	files := n.Host.Files()
	defer func() {
		err = errors.Join(err, n.Kill(ctx), files.RemoveAll(n.Dir))
	}()
	if err := n.run(ctx, c.path, "gctwm", true); err != nil {
		return k, err
	}
	if k.Tip, k.Bytes, err = mine(ctx, n.API, spec, say); err != nil {
		return k, err
	}
	if err := n.Halt(ctx); err != nil { // a regular shutdown, which closes the database
		return k, err
	}
	return k, copyFile(ctx, files, filepath.Join(n.Dir, "consensus"), testbed.LocalFiles{}, dir)
}

// mine makes the blocks and submits them to siad one by one. It returns the ID of the last block
// and the total size of all blocks.
func mine(ctx context.Context, a *sia.API, spec system.ChainSpec, say func(string)) (tip string, size int64,
	err error) {
	now, err := consensus(ctx, a)
	if err != nil {
		return "", 0, err
	}
	// The last block always depends on the seed, so that no two chains are the same.
	common := min(int64(spec.Blocks)-1, cheap)
	seeded := types.Address(types.HashBytes(fmt.Appendf(nil, "plimsoll chain %d", spec.Seed)))
	known := nonces(now.Tip)
	said := time.Now()
	for now.Height < int64(spec.Blocks) {
		b := now.template(seeded)
		if now.Height < common {
			b = now.template(types.Address{})
		}
		if now.Height < int64(len(known)) {
			b.Nonce = known[now.Height]
		}
		if target := types.Hash256(now.Target); !solved(&b, target) {
			if now.Height == 0 {
				say("the first blocks of this build are difficult: mining them takes minutes")
			}
			if err := solve(ctx, &b, target); err != nil {
				return "", 0, err
			}
		}
		n, next, err := submit(ctx, a, b)
		if err != nil {
			return "", 0, fmt.Errorf("block %d: %w", now.Height+1, err)
		}
		now, size = next, size+n
		if time.Since(said) > 2*time.Second {
			said = time.Now()
			say(fmt.Sprintf("%d of %d blocks are made", now.Height, spec.Blocks))
		}
	}
	return now.Tip.String(), size, nil
}

// submit sends a block to siad and checks that it has become the tip. siad may also answer 400 to a
// block that it has accepted: its miner then asks the wallet for an address, and the wallet is
// locked (and may stay locked).
func submit(ctx context.Context, a *sia.API, b types.Block) (size int64, now consensusAnswer, err error) {
	var buf bytes.Buffer
	e := types.NewEncoder(&buf)
	types.V1Block(b).EncodeTo(e)
	e.Flush() // a buffer returns no errors
	size = int64(buf.Len())
	said := a.Upload(ctx, http.MethodPost, "/miner/block", nil, size, &buf)
	if now, err = consensus(ctx, a); err == nil && now.Tip != b.ID() {
		err = errors.Join(errors.New("siad did not take it (POST /miner/block, which it has since 1.4.10)"), said)
	}
	return size, now, err
}

// copyFile copies a chain's database between directories, which may be on different hosts.
func copyFile(ctx context.Context, files testbed.Files, from string, files2 testbed.Files, to string) error {
	in, err := files.Open(filepath.Join(from, chaincache.Database))
	if err != nil {
		return err
	}
	defer in.Close()
	return files2.Write(ctx, filepath.Join(to, chaincache.Database), 0o600, in)
}

// Consensus rules of siad that its API does not report.
const (
	// nonceUnit divides every nonce from the height at which ASICs were admitted
	// (types.ASICHardforkFactor). Below that height it does no harm.
	nonceUnit = 1009
	// spacing is the interval between the blocks' timestamps, in seconds. It is far above siad's
	// target of 12 s, so that the difficulty falls as fast as the rules allow, in the end by 2 %
	// per block. The first timestamp is in 2015, which leaves room for half a million blocks before
	// the present.
	spacing = 600
)

// template returns the block after the tip, without a nonce. The whole subsidy goes to an address
// from which no one can spend.
func (c consensusAnswer) template(to types.Address) types.Block {
	height := c.Height + 1
	coins := max(c.InitialCoinbase-min(uint64(height), c.InitialCoinbase), c.MinimumCoinbase)
	return types.Block{
		ParentID:     c.Tip,
		Timestamp:    time.Unix(c.GenesisTimestamp+height*spacing, 0).UTC(),
		MinerPayouts: []types.SiacoinOutput{{Value: types.Siacoins(uint32(coins)), Address: to}},
	}
}

// solve sets the smallest nonce with which b meets target.
func solve(ctx context.Context, b *types.Block, target types.Hash256) error {
	header := b.Header()
	for header.Nonce = 0; header.ID().CmpWork(types.BlockID(target)) < 0; header.Nonce += nonceUnit {
		if header.Nonce%(nonceUnit<<16) == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	b.Nonce = header.Nonce
	return nil
}

// cheap is the height above which a block takes about ten thousand hashes or fewer. Below it, the
// difficulty is still near the initial one of dev builds and falls slowly: these blocks take half a
// billion hashes in total, and thus minutes.
const cheap = 300

// found has a file for each known first block: that of dev builds of 1.5.9 and that of the last
// revision, named after its first eight hexadecimal digits. A file holds the nonces of the blocks
// up to cheap, divided by nonceUnit, as uvarints. They are the results of solve, stored only to
// save its search: a nonce that does not fit is searched for.
//
//go:embed nonces/*.bin
var found embed.FS

// nonces returns the known nonces of the blocks after a first block, if any.
func nonces(first types.BlockID) (all []uint64) {
	rest, err := found.ReadFile(fmt.Sprintf("nonces/%x.bin", first[:4]))
	if err != nil {
		return nil
	}
	for len(rest) > 0 {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			return all
		}
		rest, all = rest[size:], append(all, n*nonceUnit)
	}
	return all
}

// solved reports whether the block's nonce meets target.
func solved(b *types.Block, target types.Hash256) bool {
	return b.ID().CmpWork(types.BlockID(target)) >= 0
}
