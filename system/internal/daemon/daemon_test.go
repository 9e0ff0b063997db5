package daemon

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// TestEmptyKeepsTheKey: a node without its data is the same node.
func TestEmptyKeepsTheKey(t *testing.T) {
	n := &Daemon[API]{Dir: disk.Dir{Files: testbed.LocalFiles{}, Path: filepath.Join(t.TempDir(), "node")}}
	k := &Kind[API]{Keep: "key", Init: func(_ context.Context, n *Daemon[API]) error {
		return n.Dir.Files.MkdirAll(n.Dir.Path, 0o700)
	}}
	if err := os.MkdirAll(n.Dir.Sub("repo").Path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(n.Dir.Sub("key").Path, []byte("k"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := k.empty(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(n.Dir.Path)
	if err != nil || len(left) != 1 || left[0].Name() != "key" {
		t.Errorf("left are %v, %v", left, err)
	}
}
