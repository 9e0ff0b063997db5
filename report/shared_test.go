package report

import (
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
)

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
	result, err := Build(r, false)
	must(t, err)
	return result
}

func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("no %s in\n%.2000s", word, text)
		}
	}
}
