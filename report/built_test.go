package report

import (
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// built is the report of a synthetic run.
func built(t testing.TB, s synthetic.Run) *Report {
	t.Helper()
	dir, run := s.Write(t)
	if s.Stop > 0 {
		must(t, run.Close())
	}
	return buildDir(t, dir)
}

func buildDir(t testing.TB, dir string) *Report {
	t.Helper()
	r, err := record.Open(dir)
	must(t, err)
	defer r.Close()
	rep, err := Build(r)
	must(t, err)
	return rep
}

func text(t testing.TB, r *Report, width int) string {
	var b strings.Builder
	must(t, r.WriteText(&b, width))
	return b.String()
}
