package workload

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Directory is a set of the files of a directory tree, sorted by path.
type Directory struct {
	root   string
	copies int
	files  []file
}

type file struct {
	Object         // its name is the path relative to the root
	modified int64 // Unix time in nanoseconds
}

// ReadDirectory lists the tree below root. The set contains its regular files. It does not contain
// symbolic links, because they may lead out of the tree or in circles, or special files (devices,
// sockets, pipes), because they may never end. The root itself may be a link. It fails for a
// directory that cannot be listed and for a file whose name cannot be used. It opens no file, so an
// unreadable file is an error only when it is opened.
//
// copies is how often the set contains the files: the same content under different names.
func ReadDirectory(ctx context.Context, root string, copies int) (Set, error) {
	d := &Directory{root: filepath.Clean(root), copies: copies}
	if info, err := os.Stat(d.root); err != nil {
		return nil, fmt.Errorf("data set %s: %w", root, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("data set %s is not a directory", root)
	}
	err := fs.WalkDir(os.DirFS(d.root), ".", func(name string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if err := checkName(name); err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			d.files = append(d.files, file{Object{name, info.Size()}, info.ModTime().UnixNano()})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("data set %s: %w", root, err)
	}
	if len(d.files) == 0 {
		return nil, fmt.Errorf("data set %s has no regular file", root)
	}
	slices.SortFunc(d.files, func(a, b file) int { return strings.Compare(a.Name, b.Name) })
	return d, nil
}

// Len implements Set.
func (d *Directory) Len() int { return len(d.files) * d.copies }

// Object implements Set.
func (d *Directory) Object(i int) Object {
	return d.files[i%len(d.files)].copy(i/len(d.files), d.copies)
}

// Open implements Set. It fails if the file has changed since it was listed.
func (d *Directory) Open(i int) (io.ReadSeekCloser, error) {
	e := d.files[i%len(d.files)]
	f, err := os.Open(filepath.Join(d.root, filepath.FromSlash(e.Name)))
	if err != nil {
		return nil, fmt.Errorf("data set: %w", err)
	}
	info, err := f.Stat()
	how := ""
	switch {
	case err != nil:
		how = err.Error()
	case info.Size() != e.Size:
		how = fmt.Sprintf("it had %d bytes and now has %d", e.Size, info.Size())
	case info.ModTime().UnixNano() != e.modified:
		how = "it was written at " + info.ModTime().UTC().Format("2006-01-02 15:04:05.999 UTC")
	default:
		return f, nil
	}
	f.Close()
	return nil, fmt.Errorf("data set: %s has changed since the data set was read: %s", e.Name, how)
}

// Fingerprint implements Set. It covers paths, sizes and modification times, but not the location
// of the tree.
func (d *Directory) Fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "plimsoll directory set v1\ncopies %d\nplimsoll manifest 1\n", d.copies)
	for _, f := range d.files {
		fmt.Fprintf(h, "%d\t%d\t%q\n", f.Size, f.modified, f.Name)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
