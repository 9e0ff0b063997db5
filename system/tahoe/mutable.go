package tahoe

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
)

// PutMutable implements system.Updater. The client first makes an RSA key of
// 2048 bits, in a fraction of a second of CPU time.
func (n *node) PutMutable(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	ref, err := n.store(ctx, http.MethodPut, n.at("/uri", "format="+n.format), size, r)
	if err != nil {
		return "", n.explain(ctx, fmt.Sprintf("put mutable %q", name), err)
	}
	n.leaves(publish)
	return ref, nil
}

// Update implements system.Updater: it replaces the whole content.
func (n *node) Update(ctx context.Context, ref system.Ref, size int64, r io.Reader) error {
	c, err := parseCap(ref)
	if err != nil {
		return err
	}
	if !c.mutable() {
		return fmt.Errorf("tahoe: %s is not the write cap of a mutable file: %w", ref, system.ErrBadRef)
	}
	if _, err := n.store(ctx, http.MethodPut, n.at("/uri/"+string(ref), ""), size, r); err != nil {
		return n.explain(ctx, "update", err)
	}
	n.leaves(mapupdate, publish)
	return nil
}

// MakeDirectory implements system.Directory: a directory is a mutable file of
// the option's format. Its name is not kept.
func (n *node) MakeDirectory(ctx context.Context, name string) (system.Ref, error) {
	ref, err := n.store(ctx, http.MethodPost, n.at("/uri", "t=mkdir&format="+n.format), 0, nil)
	if err != nil {
		return "", n.explain(ctx, fmt.Sprintf("make directory %q", name), err)
	}
	n.leaves(publish)
	return ref, nil
}

// PutIn implements system.Directory: a put, then the directory is read, changed
// and written back. Bytes of a name that may not be in one are escaped.
func (n *node) PutIn(ctx context.Context, dir system.Ref, name string, size int64, r io.Reader) (system.Ref, error) {
	c, err := parseCap(dir)
	if err != nil {
		return "", err
	}
	if !c.directory() {
		return "", fmt.Errorf("tahoe: %s is not the cap of a directory: %w", dir, system.ErrBadRef)
	}
	ref, err := n.store(ctx, http.MethodPut, n.at("/uri/"+string(dir)+"/"+disk.FileName(name), ""), size, r)
	if err != nil {
		return "", n.explain(ctx, fmt.Sprintf("put %q into a directory", name), err)
	}
	// The directory is read to see what has that name, and again to change it.
	n.leaves(slices.Concat([]string{mapupdate, retrieve}, storing(ref), []string{mapupdate, retrieve, publish})...)
	return ref, nil
}
