package chain

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/plimsoll-project/plimsoll/system/chaincache"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
)

// format is the version of the blocks made from a spec and of the files. It increases when either
// changes.
const format = 2

// Get returns the chain of the spec from a directory of chains. Each chain's directory is named
// after everything that determines it: its spec, the format and the versions of the libraries. A
// missing chain is made now, which takes longer the longer the chain is. If another process is
// making the same chain, Get waits for it until ctx ends.
func Get(ctx context.Context, cache string, s Spec, say Progress) (*Chain, error) {
	chain := &Chain{}
	var err error
	chain.Got, err = chaincache.Cache{Dir: cache, System: "sia-chain"}.Get(ctx, key(s), &chain.Manifest,
		func(dir string) (err error) {
			chain.Manifest, err = build(ctx, dir, s, say)
			return err
		})
	return chain, err
}

// build makes the chain in the empty directory dir.
func build(ctx context.Context, dir string, s Spec, say Progress) (m Manifest, err error) {
	store, err := OpenStore(dir, s.Network(), s.Genesis(), true) // a power failure leaves only a temporary directory
	if err != nil {
		return m, err
	}
	if m, err = generate(ctx, s, store.store, say); err == nil {
		err = store.bolt.Sync()
	}
	return m, errors.Join(err, store.Close())
}

// key returns the name of a chain, which depends on everything that determines the chain. The part
// before the hash is for human readers.
func key(s Spec) string {
	text, _ := json.Marshal(s) // numbers and strings cannot fail
	made := fmt.Sprint(format, string(text), Version("go.sia.tech/core"), Version("go.sia.tech/coreutils"),
		Version("go.etcd.io/bbolt"))
	name := fmt.Sprintf("%s-%dx%d-seed%d", s.Form, s.Blocks, s.Transactions, s.Seed)
	return fmt.Sprintf("%s-%x", name, sha256.Sum256([]byte(made)))[:len(name)+1+16]
}

// Version returns the name and version of a library in this binary.
func Version(path string) string {
	return filepath.Base(strings.TrimSuffix(path, "/v2")) + " " + group.Library(path)
}
