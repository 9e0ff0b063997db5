package testbed

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// A file is there whole or not at all, with its mode, and its directories are made.
func TestWrite(t *testing.T) {
	files, dir := LocalFiles{}, t.TempDir()
	path := filepath.Join(dir, "a", "b", "file")
	large := bytes.Repeat([]byte("0123456789abcdef"), 200_000) // several chunks
	for _, content := range [][]byte{nil, []byte("first"), large} {
		must(t, files.Write(t.Context(), path, 0o640, iotest.HalfReader(bytes.NewReader(content))))
		if b, err := files.ReadFile(path); err != nil || !bytes.Equal(b, content) {
			t.Errorf("%d bytes instead of %d, %v", len(b), len(content), err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	broken := errors.New("broken")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		r    io.Reader
		want error
	}{
		"broken": {t.Context(), io.MultiReader(strings.NewReader("new"), iotest.ErrReader(broken)), broken},
		"cut off": {t.Context(), io.MultiReader(strings.NewReader("new"), iotest.ErrReader(io.ErrUnexpectedEOF)),
			io.ErrUnexpectedEOF},
		"cancelled": {ended, strings.NewReader("new"), context.Canceled},
	} {
		if err := files.Write(c.ctx, path, 0o600, c.r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, large) {
		t.Errorf("what was there is lost: %d bytes, %v", len(b), err)
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 1 {
		t.Errorf("left behind: %v, %v", all, err)
	}
}

func TestWalk(t *testing.T) {
	files, dir := LocalFiles{}, t.TempDir()
	if err := errors.Join(
		files.MkdirAll(filepath.Join(dir, "d", "e"), 0o755), os.WriteFile(filepath.Join(dir, "d", "one"), []byte("1"),
			0o600),
		os.Link(filepath.Join(dir, "d", "one"), filepath.Join(dir, "d", "two")),
		os.Symlink("/", filepath.Join(dir, "link")),
	); err != nil {
		t.Fatal(err)
	}
	var paths []string
	inodes := map[uint64]bool{}
	if err := files.Walk(dir, func(e Entry) error {
		paths = append(paths, e.Path)
		inodes[e.Inode] = true
		if e.Mode.IsRegular() != (e.Size == 1) && e.Path != "link" {
			t.Errorf("%+v", e)
		}
		return nil
	}); err != nil || !slices.Equal(paths, []string{".", "d", "d/e", "d/one", "d/two", "link"}) || len(inodes) != 5 {
		t.Errorf("%v with %d inodes, %v", paths, len(inodes), err)
	}
	stop := errors.New("stop")
	if err := files.Walk(dir, func(Entry) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	if err := files.Walk(filepath.Join(dir, "none"), func(Entry) error { return nil }); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}
