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

// format is the version of what this package makes: of the blocks that follow from
// a spec, and of the files. It rises when either changes.
const format = 2

// Get is the chain of the spec in a directory of chains, each in a directory named by what it follows
// from: its spec, the format and the versions of the libraries. One that is not there is made now, which takes as long
// as it is long. Where another process is making the same, it waits for it, for as long as ctx lets it.
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

// build makes the chain in dir, which is empty.
func build(ctx context.Context, dir string, s Spec, say Progress) (m Manifest, err error) {
	store, err := OpenStore(dir, s.Network(), s.Genesis(), true) // a power failure leaves a temporary directory
	if err != nil {
		return m, err
	}
	if m, err = generate(ctx, s, store.store, say); err == nil {
		err = store.bolt.Sync()
	}
	return m, errors.Join(err, store.Close())
}

// key names a chain by all that it follows from; the part before the sum is for
// readers.
func key(s Spec) string {
	text, _ := json.Marshal(s) // of numbers and texts: no error
	made := fmt.Sprint(format, string(text), Version("go.sia.tech/core"), Version("go.sia.tech/coreutils"),
		Version("go.etcd.io/bbolt"))
	name := fmt.Sprintf("%s-%dx%d-seed%d", s.Form, s.Blocks, s.Transactions, s.Seed)
	return fmt.Sprintf("%s-%x", name, sha256.Sum256([]byte(made)))[:len(name)+1+16]
}

// Version is the name and the version of a library in this binary.
func Version(path string) string {
	return filepath.Base(strings.TrimSuffix(path, "/v2")) + " " + group.Library(path)
}
