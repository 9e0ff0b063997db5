package chain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.sia.tech/core/types"
)

const manifestFile = "manifest.json"

// Chain is one on disk.
type Chain struct {
	Manifest
	Dir   string // of its files
	Built bool   // it was made just now
	Note  string // why, where one was there already; empty: none was, or it was used
}

// Manifest describes a chain beside its store.
type Manifest struct {
	Format       int              `json:"format"`
	Spec         Spec             `json:"spec"`
	Versions     Versions         `json:"versions"` // what it was made with
	Genesis      types.BlockID    `json:"genesis"`
	Tip          types.ChainIndex `json:"tip"`
	Bytes        int64            `json:"bytes"`        // of its blocks as SendV2Blocks sends them, genesis and framing aside
	Transactions int64            `json:"transactions"` // after genesis
	Took         float64          `json:"took"`         // seconds to make it
	Store        File             `json:"store"`
}

// File is what a file was when the chain was made.
type File struct {
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
	SHA256   string    `json:"sha256"`
}

// Open opens the chain in dir, which a [Cache] made: for the process of a peer,
// which is told where the chain is and makes none. Its store is looked at as
// [Cache.Chain] does.
func Open(dir string) (*Chain, error) {
	c := &Chain{Dir: dir}
	b, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, fmt.Errorf("sia-chain: %w", err)
	}
	if err := json.Unmarshal(b, &c.Manifest); err != nil {
		return nil, fmt.Errorf("sia-chain: %s: %w: %w", filepath.Join(dir, manifestFile), ErrDamaged, err)
	}
	if err := c.Spec.Validate(); err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, filepath.Join(dir, manifestFile))
	}
	return c, nil
}

// store is the path of the chain's database.
func (c *Chain) store() string { return filepath.Join(c.Dir, StoreFile) }

// StoreLimit is the most that the store of a node which syncs the chain takes on
// its disk, in bytes. It commits more often than the store that the chain was made
// in, and so has more pages that are half full or free: up to a quarter more was
// seen; and it grows in steps of 16 MiB.
func (c *Chain) StoreLimit() int64 { return c.Store.Bytes*3/2 + 64<<20 }

// look compares the store with the manifest without reading it. Where only its
// time differs, as after copying, its content decides.
func (c *Chain) look(ctx context.Context) error {
	info, err := os.Stat(c.store())
	switch {
	case err != nil:
		return err
	case info.Size() != c.Store.Bytes:
		return fmt.Errorf("%s has %d bytes instead of %d", c.store(), info.Size(), c.Store.Bytes)
	case !info.ModTime().Equal(c.Store.Modified):
		return c.Verify(ctx)
	}
	return nil
}

// Verify reads the whole store and compares it with the manifest.
func (c *Chain) Verify(ctx context.Context) error {
	is, err := sum(ctx, c.store())
	if err != nil {
		return fmt.Errorf("sia-chain: %w", err)
	}
	if is != c.Store.SHA256 {
		return fmt.Errorf("sia-chain: %s: %w: its content is not what was made", c.store(), ErrDamaged)
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
