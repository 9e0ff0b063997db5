package report

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A table takes the columns that there are, prose no more than can be read, and what
// has no room is named.
func TestTablesTakeTheWidthOfTheTerminal(t *testing.T) {
	table := func() textTable {
		return textTable{head: []string{"cell", "", "p (Holm)", "late"}, right: make([]bool, 4), drop: map[int]int{1: 1, 2: 2, 3: 2},
			rows: [][]string{{strings.Repeat("x", 90), "± 1 %", strings.Repeat("7", 40), ""}}}
	}
	var wide, narrow strings.Builder
	table().write(&wide, 200)
	table().write(&narrow, 96)
	if strings.Contains(wide.String(), "Left out") || !strings.Contains(wide.String(), strings.Repeat("7", 40)) {
		t.Error(wide.String())
	}
	if s := narrow.String(); !strings.Contains(s, "columns: intervals, p (Holm).") || strings.Contains(s, "777") {
		t.Error(s)
	}
	var prose strings.Builder
	wrap(&prose, strings.Repeat("word ", 60), 200, "")
	for _, l := range strings.Split(prose.String(), "\n") {
		if utf8.RuneCountInString(l) > proseWidth {
			t.Error(l)
		}
	}
}
