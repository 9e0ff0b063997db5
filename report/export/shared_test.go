package export

import (
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/facts"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report"
)

// retrieved is a committed run and its report.
func retrieved(t testing.TB) (*record.Reader, *analysis.Result) {
	t.Helper()
	run, err := record.Open(facts.Unpack(t, "retrieve"))
	must(t, err)
	t.Cleanup(func() { run.Close() })
	r, err := report.Build(run)
	must(t, err)
	return run, r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
