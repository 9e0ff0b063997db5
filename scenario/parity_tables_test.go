package scenario

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
)

// tableFacts are where numbers of the old report that are no cell's lie in the new tables: for each kind of line,
// its table and the column of each value. A value with an interval is a line of its own.
var tableFacts = map[string]struct {
	table   string
	columns map[string]string
}{
	"fits": {"cost", map[string]string{"connections": "connections", "operation": "operation", "system": "system", "points": "n", "from": "from", "to": "to", "misfit": "misfit",
		"a": "a", "b": "b", "rate": "rate", "rounds": "rounds", "line_share": "line_share", "against.ratio": "against", "inline.stays": "stays"}},
	"memory": {"memory", map[string]string{"system": "system", "process": "process", "processes": "processes", "operation": "operation", "one_size": "one_size",
		"rest_rss": "rest", "rest_pss": "pss", "between": "between", "one": "one", "several": "several", "growth": "growth"}},
	"phases": {"phases", map[string]string{"system": "system", "connections": "connections", "operation": "operation", "n": "n", "rtt": "rtt", "size": "size", "took": "took", "rounds": "rounds"}},
}

// compareTables holds that the tables of a result have the numbers of the old report.
func compareTables(t *testing.T, name string, res *analysis.Result) {
	t.Helper()
	want, _ := os.ReadFile("../cmd/plimsoll/testdata/facts/" + name + ".txt")
	show := func(v analysis.Num) string {
		if !v.Known() {
			return "<nil>"
		}
		return fmt.Sprintf("%.6g", float64(v))
	}
	n := 0
	for _, line := range strings.Split(string(want), "\n") {
		path, values, ok := strings.Cut(line, ": ")
		kind, rest, indexed := strings.Cut(path, "[")
		m, known := tableFacts[kind]
		if !ok || !indexed || !known {
			continue
		}
		var row int
		fmt.Sscanf(rest, "%d", &row)
		_, part, _ := strings.Cut(rest, "]")
		table := res.Table(m.table)
		if row >= len(table.Rows) {
			t.Errorf("%s: %s has no row in table %s", name, path, m.table)
			continue
		}
		for _, kv := range strings.Fields(values) {
			key, value, _ := strings.Cut(kv, "=")
			whole := strings.TrimPrefix(part+"."+key, ".")
			column, has := m.columns[whole]
			got := ""
			if v := (analysis.Value{}); has {
				if v = table.Get(row, column); v.Text != "" {
					got = v.Text
				} else {
					got = show(v.Number)
				}
			} else if of := m.columns[strings.TrimPrefix(part, ".")]; of != "" && (key == "value" || key == "lo" || key == "hi") {
				v = table.Get(row, of)
				got = show(map[string]analysis.Num{"value": v.Number, "lo": v.Lo, "hi": v.Hi}[key])
			} else {
				continue
			}
			n++
			if got != value {
				t.Errorf("%s: %s.%s = %s, the new table %s has %s", name, path, key, value, m.table, got)
			}
		}
	}
	t.Logf("%s: %d values of tables", name, n)
}
