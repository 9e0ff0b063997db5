package upload

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
)

var update = flag.Bool("update", false, "write testdata/rows/*.txt anew")

const facts = "../../cmd/plimsoll/testdata/facts/"

// unpack makes a run directory of a committed one.
func unpack(t *testing.T, name string) *record.Reader {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	plan, err := os.ReadFile(filepath.Join(facts, name, "plan.json"))
	check(t, err)
	packed, err := os.ReadFile(filepath.Join(facts, name, "run.db.gz"))
	check(t, err)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	check(t, err)
	db, err := io.ReadAll(z)
	check(t, err)
	check(t, os.Mkdir(dir, 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "plan.json"), plan, 0o644))
	check(t, os.WriteFile(filepath.Join(dir, "run.db"), db, 0o644))
	r, err := record.Open(dir)
	check(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func result(t *testing.T, name string) *analysis.Result {
	t.Helper()
	v := View()
	if name == "collect" {
		v = CollectView()
	}
	f, err := analysis.Load(unpack(t, name), v)
	check(t, err)
	r, err := analysis.Analyse(f)
	check(t, err)
	return r
}

// TestRows holds the numbers of committed load tests: those of the whole trial, and of
// its entities. A change is accepted with -update and explained in its commit.
func TestRows(t *testing.T) {
	for _, name := range []string{"upload", "upload-killed", "upload-leak", "collect"} {
		var lines []string
		for _, row := range result(t, name).Frame.Rows {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("%s %s %.6g %s", row.Metric, row.Entity, row.Value, row.Exact), " "))
		}
		slices.Sort(lines)
		got, path := strings.Join(lines, "\n")+"\n", filepath.Join("testdata", "rows", name+".txt")
		if *update {
			check(t, os.WriteFile(path, []byte(got), 0o644))
			continue
		}
		want, err := os.ReadFile(path)
		check(t, err)
		had := strings.Split(strings.TrimSuffix(string(want), "\n"), "\n")
		for _, line := range lines {
			if !slices.Contains(had, line) {
				t.Errorf("%s: new: %s", path, line)
			}
		}
		for _, line := range had {
			if !slices.Contains(lines, line) {
				t.Errorf("%s: gone: %s", path, line)
			}
		}
	}
}

// TestFindings holds what the committed load tests are said to have found.
func TestFindings(t *testing.T) {
	for name, want := range map[string]struct {
		own  string
		tone analysis.Tone
	}{"upload": {"", analysis.Good}, "upload-killed": {"poll-gaps", analysis.Good}, "upload-leak": {"money-unexplained",
		analysis.Bad}, "collect": {"", analysis.Good}} {
		r := result(t, name)
		var own []string
		for _, f := range r.Findings {
			for _, rule := range rules() {
				if rule.ID == f.Rule {
					own = append(own, f.Rule)
				}
			}
		}
		if got := strings.Join(own, " "); got != want.own || r.Verdict.Tone != want.tone {
			t.Errorf("%s: found %q, verdict %+v", name, got, r.Verdict)
		}
	}
}
