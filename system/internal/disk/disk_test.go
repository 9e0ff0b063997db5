package disk

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFileNameIsInjectiveAndSafe(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{
		"", "a", "A", "a.b", ".a", "..", "a/b", "a=b", "a=3Db", "=", "%41", "\x00", "\xff", "é", Probe,
		strings.Repeat("x", 200), strings.Repeat("x", 201), strings.Repeat("/", 200), "=sha256=" + strings.Repeat("0", 64),
	} {
		file := FileName(name)
		if other, dup := seen[file]; dup {
			t.Errorf("%q and %q are both %s", name, other, file)
		}
		seen[file] = name
		if err := Valid(file); err != nil {
			t.Error(err)
		}
		if len(file) > 255 {
			t.Errorf("%q: file name of %d bytes", name, len(file))
		}
		if back := Name(file); back != name && !strings.HasPrefix(file, "=sha256=") {
			t.Errorf("%q became %q, then %q", name, file, back)
		}
	}
}

func TestWriteIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("broken")
	for name, r := range map[string]io.Reader{
		"short":  strings.NewReader("1234"),
		"long":   strings.NewReader("123456"),
		"broken": io.MultiReader(strings.NewReader("12345"), failing{broken}),
	} {
		if _, err := Write(t.Context(), dir, name, 5, r); err == nil {
			t.Errorf("a %s reader is written", name)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Write(ended, dir, "cancelled", 1, strings.NewReader("1")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// An object that is replaced is never seen half written.
	for _, text := range []string{"first", "other"} {
		if _, err := Write(t.Context(), dir, "o", 5, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "o")); err != nil || string(b) != text {
			t.Errorf("read %q, %v", b, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
