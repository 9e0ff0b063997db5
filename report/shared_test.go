package report

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

var update = flag.Bool("update", false, "write the golden files anew")

var sharedRun synthetic.Shared

func TestMain(m *testing.M) {
	if dir := os.Getenv(loadMemoryEnv); dir != "" {
		if err := loadAndReport(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if dir := os.Getenv(memoryEnv); dir != "" {
		if err := recordAndReport(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	code := m.Run()
	sharedRun.Remove()
	os.Exit(code)
}

// shared is the directory of the synthetic run; tests must not change it.
func shared(t testing.TB) string { t.Helper(); return sharedRun.Dir(t) }

func sharedReport(t testing.TB) *Report { return buildDir(t, shared(t)) }

// golden compares with a file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if got != string(want) {
		t.Errorf("%s differs (run with -update to accept):\n%s", path, got)
	}
}
