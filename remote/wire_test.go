package remote

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// A stream that was cut anywhere is not accepted as a run directory.
func TestCutStream(t *testing.T) {
	from := t.TempDir()
	write(t, from+"/plan.json", "{}")
	write(t, from+"/logs/a.log", "text")
	var all bytes.Buffer
	must(t, writeRun(&all, from))
	to := t.TempDir()
	must(t, readRun(bytes.NewReader(all.Bytes()), to))
	if b, err := os.ReadFile(to + "/logs/a.log"); err != nil || string(b) != "text" {
		t.Errorf("%q, %v", b, err)
	}
	for n := 0; n < bytes.Index(all.Bytes(), []byte(endMark+"\x00")); n += 128 {
		if err := readRun(bytes.NewReader(all.Bytes()[:n]), t.TempDir()); err == nil {
			t.Fatalf("the first %d of %d bytes are a run directory", n, all.Len())
		}
	}
	// A writer that could not read everything also ends the archive.
	var part bytes.Buffer
	if err := writeRun(&part, from+"/missing"); err == nil {
		t.Error("a missing directory is no error")
	}
	if err := readRun(&part, t.TempDir()); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

// Files that SQLite left beside an older database do not become part of a newer one.
func TestStaleJournals(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(t, w.WriteHeader(&tar.Header{Name: database, Size: 3, Mode: 0o600}))
	_, err := io.WriteString(w, "new")
	must(t, err)
	must(t, w.WriteHeader(&tar.Header{Name: endMark}))
	dir := t.TempDir()
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		write(t, filepath.Join(dir, database+suffix), "old")
	}
	must(t, readRun(&b, dir))
	files, _ := filepath.Glob(dir + "/*")
	if text, _ := os.ReadFile(filepath.Join(dir, database)); string(text) != "new" || len(files) != 1 {
		t.Errorf("%q, %v", text, files)
	}
}

func TestReadWhere(t *testing.T) {
	for text, good := range map[string]bool{
		`{"on": "ssh:/h"}`: true, `{"on": "ssh:/h", "run": "rabcdefghij2"}`: true,
		`{"on": "ssh:/h", "run": "../../../etc"}`: false, `{"on": "ssh:/h", "run": "rabcdefghij2/.."}`: false,
		`{`: false,
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, whereIs), text)
		if w, err := ReadWhere(dir); (err == nil) != good {
			t.Errorf("%s: %+v, %v", text, w, err)
		}
	}
}

// A trial and a copy of the run directory wait for each other, but not for ever.
func TestCopiesBesideTrials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		t.Setenv("TMPDIR", os.TempDir()) // set by ServeNode
		write(t, filepath.Join(dir, RunDir, planFile), "{}")
		waits := func(ctx context.Context, want time.Duration) (release func()) {
			t.Helper()
			begun := time.Now()
			release = betweenTrials(ctx, dir)
			if took := time.Since(begun); took < want || took > want+time.Second {
				t.Errorf("it waited %s, not %s", took, want)
			}
			return release
		}
		end := waits(t.Context(), 0)
		copied := make(chan error, 1)
		go func() {
			copied <- ServeNode(t.Context(), []string{"fetch", "--dir", dir}, nil, io.Discard, nil)
		}()
		time.Sleep(time.Minute)
		if len(copied) > 0 {
			t.Error("a copy was made during a trial")
		}
		end()
		must(t, <-copied)
		end = waits(t.Context(), 0)
		impatient := waits(t.Context(), copyPatience)
		end()
		interrupted, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		waits(interrupted, 2*time.Second)() // the next one waits for the impatient one
		impatient()
		waits(t.Context(), 0)()
	})
}

func TestStateOf(t *testing.T) {
	dir := t.TempDir()
	check := func(want string) {
		t.Helper()
		if got := stateOf(dir); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	check(stateNever)
	write(t, filepath.Join(dir, RunDir, planFile), "{}")
	check(stateNever)
	write(t, filepath.Join(dir, progressFile), "")
	check(stateDied)
	write(t, filepath.Join(dir, overMark), "")
	check(stateOver)
	must(t, os.RemoveAll(filepath.Join(dir, RunDir)))
	check(stateNever) // the directory has been removed after a day
}
