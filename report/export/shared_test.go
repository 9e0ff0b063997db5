package export

import (
	"os"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

var sharedRun synthetic.Shared

func TestMain(m *testing.M) {
	code := m.Run()
	sharedRun.Remove()
	os.Exit(code)
}

func shared(t testing.TB) string { t.Helper(); return sharedRun.Dir(t) }

func openShared(t testing.TB) *record.Reader {
	t.Helper()
	r, err := record.Open(shared(t))
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func sharedReport(t testing.TB) *analysis.Result {
	t.Helper()
	r, err := report.Build(openShared(t))
	must(t, err)
	return r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
