package scenario

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
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
	n += compareSwarms(t, name, string(want), res, show)
	t.Logf("%s: %d values of tables", name, n)
}

var swarmLine = regexp.MustCompile(`^swarms\[(\d+)\]\.(leecher|together|traffic|outcomes)[.\[](\w+)\]?$`)

// compareSwarms does so for the lines of swarms, which lie in three tables.
func compareSwarms(t *testing.T, name, want string, res *analysis.Result, show func(analysis.Num) string) (n int) {
	t.Helper()
	for _, line := range strings.Split(want, "\n") {
		path, values, _ := strings.Cut(line, ": ")
		m := swarmLine.FindStringSubmatch(path)
		if m == nil || m[2] == "outcomes" && m[3] == "ok" {
			continue
		}
		swarm, _ := strconv.Atoi(m[1])
		fact := map[string]string{}
		for _, kv := range strings.Fields(values) {
			k, v, _ := strings.Cut(kv, "=")
			fact[k] = v
		}
		check := func(key string, got analysis.Num) {
			if n++; show(got) != fact[key] {
				t.Errorf("%s: %s.%s = %s, the new table has %s", name, path, key, fact[key], show(got))
			}
		}
		if m[2] == "leecher" || m[2] == "together" {
			row := 2 * swarm
			if m[2] == "together" {
				row++
			}
			share, _ := strconv.ParseFloat(fact["share"], 64)
			v := res.Table("completion").Get(row, fmt.Sprintf("at_%.0f", 100*share))
			check("median", v.Number)
			check("lo", v.Lo)
			check("hi", v.Hi)
			continue
		}
		id, value := "nodes", fact["kind"]
		if m[2] == "outcomes" {
			id, value = "ends", m[3]
		}
		table := res.Table(id)
		row := slices.IndexFunc(table.Rows, func(r []analysis.Value) bool { return r[0].Text == res.Cells[swarm].System && r[2].Text == value })
		if row < 0 {
			t.Errorf("%s: %s: no row of %s in table %s", name, path, value, id)
			continue
		}
		if id == "nodes" {
			for _, key := range []string{"nodes", "received", "sent", "sent_most", "cpu", "rss", "rss_most"} {
				check(key, table.Get(row, key).Number)
			}
			continue
		}
		v := table.Get(row, "share")
		check("value", v.Number)
		check("lo", v.Lo)
		check("hi", v.Hi)
		check("n", table.Get(row, "n").Number)
		check("of", table.Get(row, "of").Number)
	}
	return n
}
