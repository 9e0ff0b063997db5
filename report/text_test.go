package report

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextTable(t *testing.T) {
	golden(t, "table.txt", text(t, sharedReport(t), 100))
}

func TestTextFitsItsWidth(t *testing.T) {
	r := sharedReport(t)
	for _, width := range []int{100, 80, 60} {
		for line := range strings.Lines(text(t, r, width)) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("width %d: a line has %d: %q", width, n, line)
			}
		}
	}
}

// Where there is no terminal no column and no part of a name is left out.
func TestTextWithoutATerminalIsWhole(t *testing.T) {
	const name = "a-system-with-a-rather-long-name"
	r := *sharedReport(t)
	r.Cells = slices.Clone(r.Cells)
	for i := range r.Cells {
		if r.Cells[i].System == r.Systems[1].Name {
			r.Cells[i].System = name
		}
	}
	narrow, whole := text(t, &r, 60), text(t, &r, 0)
	for _, want := range []string{name, "of the line", "TTFB", "duration", "ratio", "success", "valid"} {
		if !strings.Contains(whole, want) {
			t.Errorf("without a terminal %q is missing:\n%s", want, whole)
		}
	}
	if strings.Contains(whole, "…") || strings.Contains(narrow, name) || strings.Contains(narrow, "duration  ") || !strings.Contains(narrow, name[:mostName-1]+"…") {
		t.Errorf("without a terminal:\n%s\non one of 60 columns:\n%s", whole, narrow)
	}
	table := textTable{head: []string{"system", "n", "p"}, right: []bool{false, true, true}, rows: [][]string{{name, "1", "2"}}, most: map[int]int{0: 5}, drop: map[int]int{2: 2}}
	var b strings.Builder
	table.write(&b, 0)
	if !strings.Contains(b.String(), name+"  1  2") {
		t.Errorf("a table: %s", b.String())
	}
	b.Reset()
	table.write(&b, 10)
	if !strings.Contains(b.String(), "a-sy…  1\n") {
		t.Errorf("a narrow table: %s", b.String())
	}
}

func TestNumbersAreShort(t *testing.T) {
	for _, c := range []struct {
		v          float64
		unit, want string
	}{
		{11.84e6, "B/s", "11.8 MB/s"}, {0.04211, "s", "42.1 ms"}, {0.9996, "s", "1.00 s"}, {999.6e6, "B/s", "1.00 GB/s"}, {0, "s", "0 s"},
		{1e9, "bit/s", "1.00 Gbit/s"}, {0.6234, "×", "0.623×"}, {0.5, "ratio", "50.0 %"}, {123456, "×", "123456×"}, {12.5, "1/s", "12.5 /s"},
	} {
		if got := show(c.v, c.unit); got != c.want {
			t.Errorf("show(%g, %q) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
	for _, c := range []struct {
		share float64
		want  string
	}{{0, "0 %"}, {1, "100 %"}, {0.99999, "> 99.9 %"}, {0.995, "99.5 %"}, {0.00001, "< 0.1 %"}, {0.055, "5.5 %"}, {0.5, "50 %"}} {
		if got := percent(c.share); got != c.want {
			t.Errorf("percent(%g) = %q, want %q", c.share, got, c.want)
		}
	}
	if got := exact(0.02, "s"); got != "20 ms" {
		t.Errorf("exact: %q", got)
	}
}
