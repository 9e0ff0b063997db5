package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Tasks keeps on disk what a node was given to do, so that its next process goes on.
type Tasks struct{ Dir string }

func (t Tasks) path(ref string) string { return filepath.Join(t.Dir, ref+".json") }

// Save writes a task, whole or not at all.
func (t Tasks) Save(ref string, task any) error {
	b, err := json.Marshal(task)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(t.Dir, 0o755); err != nil {
		return err
	}
	return WriteWhole(t.path(ref), b)
}

// Remove forgets a task.
func (t Tasks) Remove(ref string) error { return os.Remove(t.path(ref)) }

// Resume calls take for each task that an earlier process left.
func Resume[T any](t Tasks, take func(ref string, task T) error) error {
	paths, err := filepath.Glob(t.path("*"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var task T
		if err := json.Unmarshal(b, &task); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := take(strings.TrimSuffix(filepath.Base(path), ".json"), task); err != nil {
			return err
		}
	}
	return nil
}

// WriteWhole writes a file that is there whole or not at all.
func WriteWhole(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails when renamed, as it should
	_, err = f.Write(b)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Merge adds to list those of more that are not in it.
func Merge(list, more []string) []string {
	for _, a := range more {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// Receive writes the size bytes of r to a new file in dir, for the caller to rename
// or remove, and hands over each block on the way, to be hashed.
func Receive(ctx context.Context, dir string, size, block int64, r io.Reader, each func([]byte)) (path string, err error) {
	f, err := os.CreateTemp(dir, ".publish-*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(f.Name())
		}
	}()
	buf := make([]byte, max(1, min(block, size)))
	for left := size; left > 0; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		b := buf[:min(left, block)]
		if _, err := io.ReadFull(r, b); err != nil {
			return "", fmt.Errorf("after %d of %d bytes: %w", size-left, size, err)
		}
		if _, err := f.Write(b); err != nil {
			return "", err
		}
		each(b)
		left -= int64(len(b))
	}
	// A client that breaks off late would have published all the same.
	switch n, err := r.Read(buf[:1]); {
	case n > 0:
		return "", fmt.Errorf("more than %d bytes", size)
	case err != nil && err != io.EOF:
		return "", fmt.Errorf("after %d bytes: %w", size, err)
	}
	return f.Name(), f.Chmod(0o644)
}
