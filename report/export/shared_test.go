package export

import (
	"io"
	"os"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/facts"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report"
)

// retrieved is a committed run and its report.
func retrieved(t testing.TB) (*record.Reader, *analysis.Result) {
	t.Helper()
	return opened(t, facts.Unpack(t, "retrieve"))
}

// opened is a run and its report.
func opened(t testing.TB, dir string) (*record.Reader, *analysis.Result) {
	t.Helper()
	run, err := record.Open(dir)
	must(t, err)
	t.Cleanup(func() { run.Close() })
	r, err := report.Build(run, false)
	must(t, err)
	return run, r
}

func writeFile(t testing.TB, path string, to func(io.Writer) error) {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	must(t, to(f))
	must(t, f.Close())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
