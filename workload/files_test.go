package workload

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func noProgress(int, int64) {}

func TestWriteAndVerifyFiles(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "[set]*")
	s := synthetic(t, 20, spread(t, 20, 1, Bucket{1, 1, 100_000}), Options{Seed: 1, Copies: 2})
	var objects int
	var moved, want int64
	for i := range s.Len() {
		want += s.Object(i).Size
	}
	kept, err := WriteFiles(ctx, s, dir, func(n int, bytes int64) { objects += n; moved += bytes })
	if err != nil || kept != 0 || objects != 40 || moved != want {
		t.Fatalf("%d kept, %d objects, %d bytes of %d, %v", kept, objects, moved, want, err)
	}
	v, err := VerifyFiles(ctx, s, dir, noProgress)
	if err != nil || !v.Good() || v.Whole != 40 {
		t.Fatalf("%+v, %v", v, err)
	}
	// What is there already is compared and stays; what an earlier one left
	// incomplete goes.
	put(t, filepath.Join(dir, partial+"123"), "half")
	if err := os.Remove(filepath.Join(dir, s.Object(3).Name)); err != nil {
		t.Fatal(err)
	}
	if kept, err := WriteFiles(ctx, s, dir, noProgress); err != nil || kept != 39 {
		t.Errorf("%d kept, %v", kept, err)
	}
	if v, err := VerifyFiles(ctx, s, dir, noProgress); err != nil || !v.Good() || v.Whole != 40 {
		t.Errorf("%+v, %v", v, err)
	}
	// Something else is in the way: it is named and stays.
	put(t, filepath.Join(dir, s.Object(5).Name), "mine")
	if _, err := WriteFiles(ctx, s, dir, noProgress); err == nil || !strings.Contains(err.Error(), s.Object(5).Name) {
		t.Errorf("another file in the way: %v", err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, s.Object(5).Name)); string(b) != "mine" {
		t.Errorf("it was overwritten with %d bytes", len(b))
	}
	if err := os.Remove(filepath.Join(dir, s.Object(0).Name)); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "sub", "extra"), "x")
	v, err = VerifyFiles(ctx, s, dir, noProgress)
	if err != nil || v.Whole != 38 || v.Missing != 1 || v.Differ != 1 || v.Extra != 1 || v.Good() {
		t.Errorf("%+v, %v", v, err)
	}
	text := errors.Join(v.First...).Error()
	for _, want := range []string{s.Object(0).Name + " is missing", s.Object(5).Name, "sub/extra is no object"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not told:\n%s", want, text)
		}
	}
	// As many files too many as too few: still told.
	if err := os.Remove(filepath.Join(dir, s.Object(1).Name)); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "other"), "x")
	if v, _ := VerifyFiles(ctx, s, dir, noProgress); v.Missing != 2 || v.Extra != 2 {
		t.Errorf("%+v", v)
	}
}

// One flipped bit in one of the files is found, and where it is told.
func TestVerifyFilesFindsOneBit(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s := synthetic(t, 3, Fixed{3, 3 << 20}, Options{Seed: 1, Compressible: 0.5})
	if _, err := WriteFiles(ctx, s, dir, noProgress); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, s.Object(1).Name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[2_000_001] ^= 0x10
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	v, err := VerifyFiles(ctx, s, dir, noProgress)
	if err != nil || v.Differ != 1 || !strings.Contains(v.First[0].Error(), "byte 2000001 differs") {
		t.Errorf("%+v, %v", v, err)
	}
}

// Interrupted at any point, nothing incomplete lies under a final name.
func TestWriteFilesInterrupted(t *testing.T) {
	dir := t.TempDir()
	s := synthetic(t, 10, Fixed{10, 3 << 20}, Options{Seed: 1})
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("stop")
	n := 0
	_, err := WriteFiles(ctx, s, dir, func(int, int64) {
		if n++; n == 4 {
			cancel(stop)
		}
	})
	if !errors.Is(err, stop) {
		t.Fatalf("error %v", err)
	}
	v, err := VerifyFiles(context.Background(), s, dir, noProgress)
	if err != nil || v.Whole != 4 || v.Missing != 6 || v.Differ+v.Extra != 0 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestFilesErrors(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s := synthetic(t, 1, Fixed{1, 1}, Options{})
	put(t, filepath.Join(dir, "file"), "x")
	if _, err := WriteFiles(ctx, s, filepath.Join(dir, "file"), noProgress); err == nil {
		t.Error("writing below a file gave no error")
	}
	for _, path := range []string{"file", "nowhere"} {
		if _, err := VerifyFiles(ctx, s, filepath.Join(dir, path), noProgress); err == nil {
			t.Errorf("%s is verified", path)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, s.Object(0).Name), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteFiles(ctx, s, dir, noProgress); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory in the way: %v", err)
	}
}
