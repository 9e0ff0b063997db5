package upload

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/facts"
	"github.com/plimsoll-project/plimsoll/record"
)

var update = flag.Bool("update", false, "write testdata/rows/*.txt anew")

// unpack opens a committed run.
func unpack(t *testing.T, name string) *record.Reader {
	t.Helper()
	r, err := record.Open(facts.Unpack(t, name))
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
	run := unpack(t, name)
	plan, err := analysis.ReadPlan(run)
	check(t, err)
	f, err := analysis.Load(run, plan, v, nil)
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
