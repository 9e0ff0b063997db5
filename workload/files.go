package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Progress is told after each object of [WriteFiles] and [VerifyFiles].
type Progress func(objects int, bytes int64)

// partial begins the names of files that are not complete.
const partial = ".plimsoll-partial-"

// fileBuffer is large enough that system calls do not count.
const fileBuffer = 1 << 20

// WriteFiles writes the objects of a set as files below dir, which is made when
// it is not there. A file appears under its name only when it is complete. One
// that is there already is compared: when it is the object, it stays; when it is
// anything else, that is an error, and it stays, too. kept is how many were
// there. What an earlier call left incomplete is removed, so two must not write
// to one directory at the same time.
func WriteFiles(ctx context.Context, set Set, dir string, progress Progress) (kept int, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("write data set: %w", err)
	}
	left, err := filepath.Glob(filepath.Join(globLiteral(dir), partial+"*"))
	if err != nil {
		return 0, fmt.Errorf("write data set: %w", err)
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			return 0, fmt.Errorf("write data set: remove what an earlier one left: %w", err)
		}
	}
	buf := make([]byte, fileBuffer)
	made := dir // the last parent, most objects have the same as the one before
	for i := range set.Len() {
		if ctx.Err() != nil {
			return kept, context.Cause(ctx)
		}
		o := set.Object(i)
		path := filepath.Join(dir, filepath.FromSlash(o.Name))
		if parent := filepath.Dir(path); parent != made {
			if err := os.MkdirAll(parent, 0o755); err != nil {
				return kept, fmt.Errorf("write data set: %w", err)
			}
			made = parent
		}
		switch err := compareFile(ctx, set, i, path, buf); {
		case err == nil:
			kept++
		case !errors.Is(err, fs.ErrNotExist):
			return kept, fmt.Errorf("write data set: %s is there already and is not the object: %w", path, err)
		default:
			if err := writeFile(ctx, set, i, dir, path, buf); err != nil {
				return kept, fmt.Errorf("write data set: object %s of %d bytes: %w", o.Name, o.Size, err)
			}
		}
		progress(1, o.Size)
	}
	return kept, nil
}

// globLiteral quotes what a pattern would take for more than itself.
func globLiteral(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func writeFile(ctx context.Context, set Set, i int, dir, path string, buf []byte) (err error) {
	r, err := set.Open(i)
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := os.CreateTemp(dir, partial+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := copyAll(ctx, f, r, buf); err != nil {
		return err
	}
	// What is to store the files may run as another user.
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// copyAll is io.CopyBuffer that always uses the buffer, and ends with ctx.
func copyAll(ctx context.Context, w io.Writer, r io.Reader, buf []byte) error {
	for ctx.Err() == nil {
		n, err := r.Read(buf)
		if _, werr := w.Write(buf[:n]); werr != nil {
			return werr
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// compareFile compares a file with an object.
func compareFile(ctx context.Context, set Set, i int, path string, buf []byte) error {
	// Not Open: that waits where something else than a file is in the way.
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := set.Check(i)
	if err != nil {
		return err
	}
	if err := copyAll(ctx, w, f, buf); err != nil {
		w.Close()
		return err
	}
	return w.Close()
}

// Verdict is what became of the files of a set.
type Verdict struct {
	Whole   int // objects whose files are as they were written
	Missing int
	Differ  int
	Extra   int     // files that are no object of the set
	First   []error // what is wrong, the first ten
}

// Good reports whether nothing is wrong.
func (v Verdict) Good() bool { return v.Missing+v.Differ+v.Extra == 0 }

// VerifyFiles compares the files below dir with the set that they were written
// from, byte by byte. Its error is what kept it from comparing at all.
func VerifyFiles(ctx context.Context, set Set, dir string, progress Progress) (Verdict, error) {
	var v Verdict
	note := func(n *int, err error) {
		*n++
		if len(v.First) < 10 {
			v.First = append(v.First, err)
		}
	}
	if info, err := os.Stat(dir); err != nil {
		return v, fmt.Errorf("verify data set: %w", err)
	} else if !info.IsDir() {
		return v, fmt.Errorf("verify data set: %s is not a directory", dir)
	}
	buf := make([]byte, fileBuffer)
	for i := range set.Len() {
		o := set.Object(i)
		err := compareFile(ctx, set, i, filepath.Join(dir, filepath.FromSlash(o.Name)), buf)
		switch {
		case ctx.Err() != nil:
			return v, context.Cause(ctx)
		case err == nil:
			v.Whole++
		case errors.Is(err, fs.ErrNotExist):
			note(&v.Missing, fmt.Errorf("%s is missing", o.Name))
		default:
			note(&v.Differ, err)
		}
		progress(1, o.Size)
	}
	return v, v.extra(ctx, set, dir, note)
}

// extra looks for files that are no object. Where there are as many files as
// there are whole or different objects, there are none.
func (v *Verdict) extra(ctx context.Context, set Set, dir string, note func(*int, error)) error {
	var names map[string]bool
	files := 0
	walk := func(found func(name string)) error {
		return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			rel, err := filepath.Rel(dir, path)
			if err == nil {
				found(filepath.ToSlash(rel))
			}
			return err
		})
	}
	if err := walk(func(string) { files++ }); err != nil {
		return fmt.Errorf("verify data set: %w", err)
	}
	if files == v.Whole+v.Differ {
		return nil
	}
	names = make(map[string]bool, set.Len())
	for i := range set.Len() {
		names[set.Object(i).Name] = true
	}
	err := walk(func(name string) {
		if !names[name] {
			note(&v.Extra, fmt.Errorf("%s is no object of the data set", name))
		}
	})
	if err != nil {
		return fmt.Errorf("verify data set: %w", err)
	}
	return nil
}
