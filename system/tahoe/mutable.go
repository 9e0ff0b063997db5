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

// PutMutable implements system.MutablePutter. The client first generates a 2048-bit RSA key, in a
// fraction of a second of CPU time.
func (n *node) PutMutable(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	return n.store(ctx, fmt.Sprintf("put mutable %q", name), http.MethodPut, n.at("/uri", "format="+n.format), size, r,
		account(publish))
}

// account returns a function that returns the same kinds of accounts for every ref.
func account(kinds ...string) func(system.Ref) []string {
	return func(system.Ref) []string { return kinds }
}

// Update implements system.Updater by replacing the whole content.
func (n *node) Update(ctx context.Context, ref system.Ref, size int64, r io.Reader) error {
	c, err := parseCap(ref)
	if err == nil && !c.mutable() {
		err = fmt.Errorf("tahoe: %s is not the write cap of a mutable file: %w", ref, system.ErrBadRef)
	}
	if err == nil {
		_, err = n.store(ctx, "update", http.MethodPut, n.at("/uri/"+string(ref), ""), size, r,
			account(mapupdate, publish))
	}
	return err
}

// MakeDirectory implements system.Directory: a directory is a mutable file in the format that the
// option selects. Its name is not stored.
func (n *node) MakeDirectory(ctx context.Context, name string) (system.Ref, error) {
	return n.store(ctx, fmt.Sprintf("make directory %q", name), http.MethodPost,
		n.at("/uri", "t=mkdir&format="+n.format), 0, nil, account(publish))
}

// PutIn implements system.Directory: after the put, the directory is read, changed and written
// back. Bytes that a name in a directory may not contain are escaped.
func (n *node) PutIn(ctx context.Context, dir system.Ref, name string, size int64, r io.Reader) (system.Ref, error) {
	c, err := parseCap(dir)
	if err == nil && !c.directory() {
		err = fmt.Errorf("tahoe: %s is not the cap of a directory: %w", dir, system.ErrBadRef)
	}
	if err != nil {
		return "", err
	}
	at := n.at("/uri/"+string(dir)+"/"+disk.FileName(name), "")
	return n.store(ctx, fmt.Sprintf("put %q into a directory", name), http.MethodPut, at, size, r,
		func(ref system.Ref) []string {
			// The directory is read to look the name up, and again to change it.
			return slices.Concat([]string{mapupdate, retrieve}, storing(ref), []string{mapupdate, retrieve, publish})
		})
}
