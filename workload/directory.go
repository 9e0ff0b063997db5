package workload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Directory is the files of a directory tree, sorted by their paths.
type Directory struct {
	root   string
	copies int
	files  []file
}

type file struct {
	path     string // with slashes, below the root
	size     int64  // bytes
	modified int64  // Unix time in nanoseconds
}

// ReadDirectory lists the tree below root. Regular files belong to the set.
// Symbolic links, to files or directories, and special files (devices, sockets,
// pipes) do not: links may lead out of the tree or in circles, the others never
// end. The root itself may be a link. The error
// names the directories that cannot be listed and the files whose names cannot
// be used, up to ten of them. No file is opened: one that cannot be read shows
// when it is.
//
// copies is how often the files are there: the same content under other names.
func ReadDirectory(ctx context.Context, root string, copies int) (*Directory, error) {
	if copies < 1 {
		copies = 1
	}
	d := &Directory{root: filepath.Clean(root), copies: copies}
	// A link as the root is followed, because WalkDir would not.
	walked, err := filepath.EvalSymlinks(d.root)
	if err != nil {
		return nil, fmt.Errorf("data set %s: %w", root, err)
	}
	if info, err := os.Stat(walked); err != nil {
		return nil, fmt.Errorf("data set %s: %w", root, err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("data set %s is not a directory", root)
	}
	bad := &problems{}
	err = filepath.WalkDir(walked, func(path string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			bad.add(err)
			return nil
		}
		if e.IsDir() {
			return nil
		}
		rel, err := filepath.Rel(walked, path)
		if err != nil {
			bad.add(err)
			return nil
		}
		name := filepath.ToSlash(rel)
		if !e.Type().IsRegular() {
			return nil
		}
		if err := checkName(name); err != nil {
			bad.add(err)
			return nil
		}
		info, err := e.Info()
		if err != nil {
			bad.add(err)
			return nil
		}
		d.files = append(d.files, file{name, info.Size(), info.ModTime().UnixNano()})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("data set %s: %w", root, err)
	}
	if err := bad.err(); err != nil {
		return nil, fmt.Errorf("data set %s: not all of it can be used:\n%w", root, err)
	}
	if len(d.files) == 0 {
		return nil, fmt.Errorf("data set %s has no regular file", root)
	}
	slices.SortFunc(d.files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return d, nil
}

// Len implements Set.
func (d *Directory) Len() int { return len(d.files) * d.copies }

// Object implements Set.
func (d *Directory) Object(i int) Object {
	e := d.files[i%len(d.files)]
	if d.copies > 1 {
		return Object{copyName(e.path, i/len(d.files)), e.size}
	}
	return Object{e.path, e.size}
}

// ChangedError is a file that is no longer what it was when the data set was
// read.
type ChangedError struct {
	Path string // within the data set
	How  string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("data set: %s has changed since the data set was read: %s", e.Path, e.How)
}

func (d *Directory) open(i int) (*os.File, error) {
	e := d.files[i%len(d.files)]
	f, err := os.Open(filepath.Join(d.root, filepath.FromSlash(e.path)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &ChangedError{e.path, "it is gone"}
	}
	if err != nil {
		return nil, fmt.Errorf("data set: %w", err)
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = fmt.Errorf("data set: %w", err)
	case info.Size() != e.size:
		err = &ChangedError{e.path, fmt.Sprintf("it had %d bytes and now has %d", e.size, info.Size())}
	case info.ModTime().UnixNano() != e.modified:
		err = &ChangedError{e.path, "it was written at " + info.ModTime().UTC().Format("2006-01-02 15:04:05.999 UTC")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Open implements Set. Its error is a [ChangedError] when the file is not the
// one that was listed.
func (d *Directory) Open(i int) (io.ReadSeekCloser, error) {
	f, err := d.open(i)
	if err != nil {
		return nil, err // not a *os.File that is nil in an interface
	}
	return f, nil
}

// Check implements Set. It reads the file again.
func (d *Directory) Check(i int) (io.WriteCloser, error) {
	f, err := d.open(i)
	if err != nil {
		return nil, err
	}
	object, off := d.Object(i), int64(0)
	buf := make([]byte, checkChunk)
	compare := func(p []byte) (int64, bool, error) {
		want := buf[:len(p)]
		switch _, err := io.ReadFull(f, want); {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return 0, false, &ChangedError{object.Name, "it became shorter while it was compared"}
		case err != nil:
			return 0, false, fmt.Errorf("data set: %w", err)
		}
		if !bytes.Equal(p, want) {
			return off + int64(differs(p, want)), false, nil
		}
		off += int64(len(p))
		return 0, true, nil
	}
	return &checker{object: object, compare: compare, close: f.Close}, nil
}

// Fingerprint implements Set: of paths, sizes and times of the last change.
// Where the tree lies is not in it.
func (d *Directory) Fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "plimsoll directory set v1\ncopies %d\nplimsoll manifest 1\n", d.copies)
	for _, f := range d.files {
		fmt.Fprintf(h, "%d\t%d\t%q\n", f.size, f.modified, f.path)
	}
	return hex.EncodeToString(h.Sum(nil))
}
