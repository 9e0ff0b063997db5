// Package fanout is the baseline for swarms: nodes that have a content serve it over HTTP; the
// others download it from them and pass nothing on. Each node is a separate process.
package fanout

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"runtime"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
)

const name = "fanout"

//go:embed info.yaml
var description string

// System implements system.Embedded.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

// Check implements system.System: it requires nothing.
func (System) Check(context.Context, system.Options) []system.Problem { return nil }

// Start implements system.System: one node on each host.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	identity := map[string]string{
		"version": runtime.Version(), "server": "net/http", "transport": "TCP, HTTP/1.1",
		"discovery": "none: seeders are named",
	}
	kind := &member.Swarm{Name: name, Ref: checkRef, Leaf: true}
	return kind.Cluster(ctx, d, identity)
}

// block is the number of bytes verified at a time: the same as a piece in the swarms that this is
// compared with.
const block = 256 << 10

// manifest is the information by which a leecher verifies a content, like a .torrent file: its size,
// and the SHA-256 of all blocks.
type manifest []byte

// sums is the position of the first hash.
const sums = 8

func newManifest(size int64) manifest { return binary.BigEndian.AppendUint64(nil, uint64(size)) }

// ref returns the name of the content: SHA-256 of the manifest.
func (m manifest) ref() system.Ref {
	sum := sha256.Sum256(m)
	return system.Ref(hex.EncodeToString(sum[:]))
}

// checkRef returns an error if ref cannot be a result of manifest.ref.
func checkRef(ref system.Ref) error { return member.Hex(name, ref, sha256.Size) }

func (m manifest) size() int64 { return int64(binary.BigEndian.Uint64(m)) }

func (m manifest) blocks() int { return len(m[sums:]) / sha256.Size }

// at returns the offset and size of block i.
func (m manifest) at(i int) (off, n int64) {
	off = int64(i) * block
	return off, min(block, m.size()-off)
}

// fits reports whether b is block i.
func (m manifest) fits(i int, b []byte) bool {
	sum := sha256.Sum256(b)
	return string(sum[:]) == string(m[sums+i*sha256.Size:][:sha256.Size])
}

// add appends the next block.
func (m *manifest) add(b []byte) {
	sum := sha256.Sum256(b)
	*m = append(*m, sum[:]...)
}
