package kubo

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"path"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// root is the folder of the node's mutable file system where ours are.
const root = "/plimsoll"

// MakeDirectory implements system.Directory: a folder of the client's node's
// mutable file system. Its ref is the path.
func (n *node) MakeDirectory(ctx context.Context, name string) (system.Ref, error) {
	if err := n.mayWrite("make directory " + name); err != nil {
		return "", err
	}
	dir := path.Join(root, disk.FileName(name))
	if err := n.near.quiet(ctx, "files/mkdir", url.Values{"arg": {dir}, "parents": {"true"}}); err != nil {
		return "", err
	}
	return system.Ref(dir), nil
}

// PutIn implements system.Directory: an import, then an entry, which makes each
// folder up to the root anew.
func (n *node) PutIn(ctx context.Context, dir system.Ref, name string, size int64, r io.Reader) (system.Ref, error) {
	if path.Dir(string(dir)) != root {
		return "", fmt.Errorf("kubo: put %q: %q is no directory of ours: %w", name, dir, system.ErrBadRef)
	}
	ref, err := n.Put(ctx, name, size, r)
	if err != nil {
		return "", err
	}
	to := path.Join(string(dir), disk.FileName(name))
	if err := n.near.quiet(ctx, "files/cp", url.Values{"arg": {"/ipfs/" + string(ref), to}}); err != nil {
		return "", fmt.Errorf("kubo: enter %s as %s: %w", ref, to, err)
	}
	return ref, nil
}
