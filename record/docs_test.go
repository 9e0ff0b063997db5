package record

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/run-db.md has, for every table, a heading and a list of its columns, in order.
// Nothing may be missing there, and nothing may be there that is not.
func TestEveryColumnIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/run-db.md")
	must(t, err)
	documented := map[string][]string{}
	heading := regexp.MustCompile("^### `([a-z_]+)`")
	item := regexp.MustCompile("^- ((?:`[a-z0-9_]+`(?:, )?)+): .{3,}$")
	table := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if m := heading.FindStringSubmatch(line); m != nil {
			table = m[1]
			documented[table] = nil
		} else if strings.HasPrefix(line, "#") {
			table = ""
		} else if m := item.FindStringSubmatch(line); m != nil && table != "" {
			documented[table] = append(documented[table], strings.Split(strings.ReplaceAll(m[1], "`", ""), ", ")...)
		}
	}

	r := create(t)
	actual := map[string][]string{}
	rows, err := r.Reader.db.Query(`SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c
		WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite_%' ORDER BY m.name, c.cid`)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var table, column string
		must(t, rows.Scan(&table, &column))
		actual[table] = append(actual[table], column)
	}
	for table, columns := range actual {
		if !slices.Equal(documented[table], columns) {
			t.Errorf("table %s has the columns\n%v, documented are\n%v", table, columns, documented[table])
		}
	}
	for table := range documented {
		if actual[table] == nil {
			t.Errorf("table %s is documented and does not exist", table)
		}
	}
	if !strings.Contains(string(text), fmt.Sprintf("Schema version: %d", schemaVersion)) {
		t.Errorf("the document is not of schema version %d", schemaVersion)
	}
	for k := range numOpKinds {
		if says := fmt.Sprintf("%d %v", k, k); !strings.Contains(string(text), says) {
			t.Errorf("the kind of operation %q is not documented", says)
		}
	}
	for _, s := range []JobState{JobPutting, JobWaiting, JobAccepted, JobDurable, JobFailed, JobRefused, JobUnreadable,
		JobMissing} {
		if !strings.Contains(string(text), "`"+string(s)+"`") {
			t.Errorf("state %s of jobs is not documented", s)
		}
	}
	for _, o := range Outcomes() {
		if !strings.Contains(string(text), "`"+o.String()+"`") {
			t.Errorf("outcome %s is not documented", o)
		}
	}
}
