package disk

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/testbed"
)

func TestFileNameIsInjectiveAndSafe(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{
		"", "a", "A", "a.b", ".a", "..", "a/b", "a=b", "a=3Db", "=", "%41", "\x00", "\xff", "é", Probe,
		strings.Repeat("x", 200), strings.Repeat("x", 201), strings.Repeat("/", 200), "=sha256=" +
			strings.Repeat("0", 64),
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

// TestPortableNamesAreTaken: what Codex refuses (its library's isValidFilename) is no
// portable name.
func TestPortableNamesAreTaken(t *testing.T) {
	refused := regexp.MustCompile(`(?i)[/\\:*?"<>|^\x00]|^$|^ | $|\.$|[ .]\.[^.]*$|` +
		`^(con|prn|aux|nul|(com|lpt)[0-9])(\.[^.]*)?$`)
	seen := map[string]string{}
	for _, name := range []string{
		"", ".", "..", "...", "a.", "a..b", "a..", "a.b.", ".hidden", " ", "a b", "a/b", `a\b`, `"`, "CON:", "é",
		"con", "CON", "Con.txt", "con.tar.gz", "aux", "nul.bin", "prn", "com0", "LPT9.x", "com", "com10", "lpt", "console",
		"contents.bin", strings.Repeat(".", 150), strings.Repeat("x", 201),
	} {
		file := PortableName(name)
		if refused.MatchString(file) || len(file) > 259 {
			t.Errorf("%q: %s is refused", name, file)
		}
		if other, dup := seen[file]; dup {
			t.Errorf("%q and %q are both %s", name, other, file)
		}
		seen[file] = name
		if back := Name(file); back != name && !strings.HasPrefix(file, "=sha256=") {
			t.Errorf("%q became %q, then %q", name, file, back)
		}
	}
	for _, name := range []string{"1MiB.bin", "a.b.c", "console.log", "com10"} { // refs depend on the name
		if file := PortableName(name); file != name {
			t.Errorf("%q became %q", name, file)
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
		if _, err := (Dir{testbed.LocalFiles{}, dir}).Seed(t.Context(), name, 5, r); err == nil {
			t.Errorf("a %s reader is written", name)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Dir{testbed.LocalFiles{}, dir}).Seed(ended, "cancelled", 1, strings.NewReader("1")); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// An object that is replaced is never seen half written.
	for _, text := range []string{"first", "other"} {
		if _, err := (Dir{testbed.LocalFiles{}, dir}).Seed(t.Context(), "o", 5, strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "o")); err != nil || string(b) != text {
			t.Errorf("read %q, %v", b, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestPathNameKeepsSlashes(t *testing.T) {
	seen := map[string]string{}
	for name, want := range map[string]string{
		"run/dir/file.txt": "run/dir/file.txt", "a b/ü": "a=20b/=C3=BC", "plain": "plain",
		"run/.hidden": "run/=2Ehidden", "a=2Fb": "a=3D2Fb",
		"/run/file": "=2Frun=2Ffile", "run//file": "run=2F=2Ffile", "run/": "run=2F", "run/../x": "run=2F..=2Fx",
		"../x": "=2E.=2Fx", "./x": "=2E=2Fx", "run/.": "run=2F.", "/": "=2F",
	} {
		got := PathName(name)
		if got != want || NameOfPath(got) != name || ValidPath(got) != nil {
			t.Errorf("%q became %q, want %q; back %q; %v", name, got, want, NameOfPath(got), ValidPath(got))
		}
		if other, taken := seen[got]; taken {
			t.Errorf("%q and %q are both %q", name, other, got)
		}
		seen[got] = name
	}
	for _, name := range []string{strings.Repeat("dir/", 300) + "file", strings.Repeat("x", 300) + "/file"} {
		got := PathName(name)
		if len(got) > 800 || ValidPath(got) != nil || got == PathName(name+"2") {
			t.Errorf("%q became %q", name, got)
		}
	}
	for _, bad := range []string{"", "/a", "a/", "a//b", "a/../b", "a/.b"} {
		if ValidPath(bad) == nil {
			t.Errorf("%q passes", bad)
		}
	}
}
