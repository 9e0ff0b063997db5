// Package facts provides tests with the recorded runs that are committed with the facts harness of
// cmd/plimsoll.
package facts

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// dir returns the directory of the committed runs, relative to this source file.
func dir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "../../cmd/plimsoll/testdata/facts")
}

// Names returns the names of the committed runs.
func Names(t testing.TB) []string {
	t.Helper()
	plans, err := filepath.Glob(filepath.Join(dir(), "*", "plan.json"))
	check(t, err)
	if len(plans) == 0 {
		t.Fatalf("facts: no runs in %s", dir())
	}
	var names []string
	for _, plan := range plans {
		names = append(names, filepath.Base(filepath.Dir(plan)))
	}
	return names
}

// Unpack creates a run directory from a committed run.
func Unpack(t testing.TB, name string) string {
	t.Helper()
	from, to := filepath.Join(dir(), name), filepath.Join(t.TempDir(), name)
	check(t, os.CopyFS(to, os.DirFS(from)))
	packed, err := os.Open(filepath.Join(to, "run.db.gz"))
	check(t, err)
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	check(t, err)
	db, err := io.ReadAll(z)
	check(t, err)
	check(t, errors.Join(os.WriteFile(filepath.Join(to, "run.db"), db, 0o644), os.Remove(packed.Name())))
	return to
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
