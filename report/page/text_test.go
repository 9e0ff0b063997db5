package page_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/report/page"
)

// The summary of every run fits a screen of 80 columns and 24 lines, of which its caller
// needs two, and begins with the verdict.
func TestText(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	views(t, func(t *testing.T, r *analysis.Result) {
		s := text(t, r, 80, false)
		lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
		if len(lines) > 22 {
			t.Errorf("%d lines", len(lines))
		}
		for _, l := range lines {
			if utf8.RuneCountInString(l) > 80 {
				t.Errorf("%d columns: %s", utf8.RuneCountInString(l), l)
			}
		}
		if first := strings.Fields(r.Verdict.Text)[0]; !strings.HasPrefix(s, first) {
			t.Errorf("it begins with %q, not with the verdict", lines[0])
		}
		contains(t, s, strings.Fields(r.Verdict.Text)...) // it is not cut off
		long := strings.Join(strings.Fields(text(t, r, 80, true)), " ")
		for _, f := range r.Findings {
			for _, want := range append([]string{f.Title}, f.Evidence...) {
				contains(t, long, strings.Join(strings.Fields(want), " "))
			}
		}
		t.Log("\n" + s)
	})
}

// With many findings, gates and cells the summary still fits.
func TestTextOfMuch(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	r := result(t, "retrieve")
	long := strings.Repeat("words ", 60)
	for range 9 {
		r.Findings = append(r.Findings, analysis.Finding{Tone: analysis.Warn, Title: long, Evidence: []string{long}})
		r.Gates = append(r.Gates, analysis.Ruling{Rule: long, State: "fail"})
	}
	r.Cells = slices.Repeat(r.Cells, 9)
	s := text(t, r, 80, false)
	if n := strings.Count(s, "\n"); n > 22 {
		t.Errorf("%d lines:\n%s", n, s)
	}
	contains(t, s, "more findings", "6 more gates", "more cells", "concurrency")
}

// A terminal has colours unless its user wants none; a file has none.
func TestTextColour(t *testing.T) {
	r := result(t, "retrieve")
	t.Setenv("TERM", "xterm")
	for _, c := range []struct {
		no    string
		width int
		want  bool
	}{{"", 80, true}, {"1", 80, false}, {"", 0, false}} {
		t.Setenv("NO_COLOR", c.no)
		if got := strings.Contains(text(t, r, c.width, false), "\x1b["); got != c.want {
			t.Errorf("NO_COLOR=%q, width %d: coloured %v", c.no, c.width, got)
		}
	}
}

// Gates of several runs name their run; those of one need not.
func TestGatesNameTheirRun(t *testing.T) {
	text := func(gates ...analysis.Ruling) string { return page.GatesText(gates, 80) }
	a := analysis.Ruling{Rule: "x > 1", Run: "run-a", State: analysis.GatePass}
	b := analysis.Ruling{Rule: "x > 1", Run: "run-b", State: analysis.GateFail}
	if got := text(a); strings.Contains(got, "run-a") {
		t.Errorf("one run: %q", got)
	}
	contains(t, text(a, b), "run-a", "run-b")
}

// A scenario's table has the columns that name its rows, and no line about a single row that it left out.
func TestTextNamesRows(t *testing.T) {
	r := result(t, "overhead")
	cost := analysis.Table{Title: "Cost", Head: []analysis.TableColumn{{Name: "system", Narrow: true},
		{Name: "connections"}, {Name: "always"}, {Name: "R", Unit: "1", Narrow: true}}}
	for _, row := range []string{"a keep", "b keep", "a fresh", "b fresh"} {
		system, how, _ := strings.Cut(row, " ")
		cost.Add(system, how, "same", 1.0)
	}
	r.Tables = []analysis.Table{cost}
	s := text(t, r, 80, false)
	contains(t, s, "a       keep", "b       fresh")
	if strings.Contains(s, "more row") || strings.Contains(s, "always") {
		t.Error(s)
	}
	r.Tables[0].Rows = append(slices.Repeat(cost.Rows[:1], 30), cost.Rows[2]) // the last differs, and is left out
	contains(t, text(t, r, 80, false), "connections", "more rows")
}
