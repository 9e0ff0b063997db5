package daemon

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/systemtest"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var must = systemtest.Must

// TestEmptyKeepsTheKey checks that a node without its data keeps its identity.
func TestEmptyKeepsTheKey(t *testing.T) {
	n := &Daemon[API]{Dir: disk.Dir{Files: testbed.LocalFiles{}, Path: filepath.Join(t.TempDir(), "node")}}
	k := &Program[API]{Keep: "key", Init: func(_ context.Context, n *Daemon[API]) error {
		return n.Dir.Files.MkdirAll(n.Dir.Path, 0o700)
	}}
	must(t, os.MkdirAll(n.Dir.Sub("repo").Path, 0o700))
	must(t, os.WriteFile(n.Dir.Sub("key").Path, []byte("k"), 0o600))
	for range 2 {
		must(t, k.empty(t.Context(), n))
	}
	left, err := os.ReadDir(n.Dir.Path)
	if err != nil || len(left) != 1 || left[0].Name() != "key" {
		t.Errorf("left are %v, %v", left, err)
	}
}

// parted is a daemon that has dropped its peer.
type parted struct {
	API
	joined chan struct{}
}

func (p parted) Connect(context.Context, string) error {
	close(p.joined)
	return nil
}

// TestDroppedPeerIsConnectedAgain checks that a read that does not begin, of an object that a node
// has, connects the nodes.
func TestDroppedPeerIsConnectedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := parted{joined: make(chan struct{})}
		p := &Pair[parted]{
			program: &Program[parted]{Name: "x", Ref: func(system.Ref) error { return nil }}, apis: []parted{a, a},
			Closed: true, NotFoundAfter: 15 * time.Second, ours: map[system.Ref]Object{"ref": {}},
		}
		from := time.Now()
		resp, err := p.Search(t.Context(), "get", "ref", func(ctx context.Context) (*http.Response, error) {
			select {
			case <-a.joined:
				return &http.Response{Body: http.NoBody}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
		if err != nil {
			t.Fatalf("after %v: %v", time.Since(from), err)
		}
		resp.Body.Close()
	})
}
