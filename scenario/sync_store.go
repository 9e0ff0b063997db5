package scenario

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Classes of a node that does not start on its store: because that is damaged, or
// after it was killed.
const (
	classDamaged = "store damaged"
	classAgain   = "not started again"
)

// damaged reports whether an error of Follow is about the store in dir: one that is
// damaged is an error that names it (see system.Follower).
func damaged(err error, dir string) bool { return dir != "" && strings.Contains(err.Error(), dir) }

// keepIn is where stores are kept that somebody should look at.
func (r *syncRunner) keepIn() string {
	if r.site.Kept != "" {
		return filepath.Join(r.site.Kept, "stores")
	}
	return filepath.Join(r.site.Dir, "stores")
}

// keepStore moves what is in a store into a directory below dir, and says which. A
// store in memory, or on another disk, is copied.
func keepStore(ctx context.Context, store StoreDir, dir, name string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	to, err := os.MkdirTemp(dir, strings.ReplaceAll(name, " ", "-")+"-")
	if err != nil {
		return "", err
	}
	entries, err := os.ReadDir(store.Path)
	for _, e := range entries {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = move(filepath.Join(store.Path, e.Name()), filepath.Join(to, e.Name()))
		}
	}
	return to, err
}

// move moves a file or a directory.
func move(from, to string) error {
	if os.Rename(from, to) == nil {
		return nil
	}
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.ReadFrom(in)
	return errors.Join(err, out.Close())
}

// empty removes everything that is in a directory.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(dir, 0o755)
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
