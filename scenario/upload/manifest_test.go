package upload

import (
	"context"
	"errors"
	"github.com/plimsoll-project/plimsoll/scenario/internal/scenariotest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/system"
)

// A directory that has changed between two sessions is refused, and the error
// names what has changed; put back as it was, the trial goes on.
func TestUploadNamesChangedFiles(t *testing.T) {
	scenariotest.Virtual(t, func(t *testing.T) {
		base := t.TempDir()
		write := func(name, text string) {
			path := filepath.Join(base, "films", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, time.Time{}, time.Unix(1_000_000_000, 0)); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			write(name, name)
		}
		cell := uploadCell(0, 0)
		cell.Data = experiment.Data{Directory: "films", Copies: 2}
		b := newUploadBench(t, system.Options{"a": "1s"}, cell)
		b.base, b.kept = base, filepath.Join(base, "run", "data")
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		if _, err := b.session(ctx); err == nil {
			t.Fatal("it is done")
		}
		write("c", "changed")
		write("sub/new", "new")
		if err := os.Remove(filepath.Join(base, "films", "d")); err != nil {
			t.Fatal(err)
		}
		_, err := b.session(t.Context())
		if err == nil || !strings.Contains(err.Error(), "mem: the data set has changed since the trial began: 1 file added, 1 removed, 1 changed (first: c); c has 7 bytes and had 1") || strings.Contains(err.Error(), "fingerprint") {
			t.Errorf("error %v", err)
		}
		write("c", "c")
		write("d", "d")
		if err := os.RemoveAll(filepath.Join(base, "films", "sub")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(base, "films", "d"), time.Time{}, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		var changed *DataChangedError
		if _, err := b.session(t.Context()); !errors.As(err, &changed) || !strings.Contains(changed.Hint(), `touch -d 2001-09-09T01:46:40Z "d"`) {
			t.Errorf("error %v, %+v", err, changed)
		}
		write("d", "d")
		if err := os.RemoveAll(filepath.Join(base, "films", "sub")); err != nil {
			t.Fatal(err)
		}
		b.must()
		if err := b.holds(); err != nil {
			t.Error(err)
		}
	})
}
