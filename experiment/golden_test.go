package experiment

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files instead of comparing")

// golden compares got with a file, or writes the file with -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		must(t, os.WriteFile(path, got, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with -update, then read it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func files(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s (%v)", pattern, err)
	}
	return paths
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}

// Each file in testdata/bad has its complete message beside it.
func TestBad(t *testing.T) {
	for _, path := range files(t, "testdata/bad/*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			src := read(t, path)
			_, err := ParseKnowing(filepath.Base(path), src, nil, testCatalog(), testKnown())
			errs, ok := err.(Errors)
			if !ok {
				t.Fatalf("error is %T, want Errors: %v", err, err)
			}
			lines := strings.Split(string(src), "\n")
			for _, e := range errs {
				if e.Line > len(lines) || e.Message == "" {
					t.Errorf("an error without a place or a message: %#v", e)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Error("the message shows a secret")
			}
			golden(t, strings.TrimSuffix(path, ".yaml")+".txt", []byte(err.Error()+"\n"))
			if _, again := ParseKnowing(filepath.Base(path), src, nil, testCatalog(),
				testKnown()); again.Error() != err.Error() {
				t.Errorf("not deterministic:\n%v\nthen:\n%v", err, again)
			}
		})
	}
}

// Each file in testdata/good has its plan beside it, as JSON and as text.
func TestGood(t *testing.T) {
	for _, path := range files(t, "testdata/good/*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			p := mustPlan(t, string(read(t, path)))
			b, err := p.Marshal()
			must(t, err)
			base := strings.TrimSuffix(path, ".yaml")
			golden(t, base+".json", b)
			text := p.Text()
			// The JSON already contains the hash.
			golden(t, base+".txt", []byte(strings.ReplaceAll(text, p.Hash, "HASH")))
			for line := range strings.Lines(text) {
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > textWidth {
					t.Errorf("a line has %d columns: %s", n, line)
				}
			}
		})
	}
}
