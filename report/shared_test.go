package report

import (
	"flag"
	"os"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

var sharedRun synthetic.Shared

// shared is the directory of the synthetic run; tests must not change it.
func shared(t testing.TB) string { t.Helper(); return sharedRun.Dir(t) }

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	sharedRun.Remove()
	os.Exit(code)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func buildDir(t testing.TB, dir string) *analysis.Result {
	t.Helper()
	r, err := record.Open(dir)
	must(t, err)
	defer r.Close()
	result, err := Build(r)
	must(t, err)
	return result
}
