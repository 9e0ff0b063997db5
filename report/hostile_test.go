package report

import (
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/internal/synthetic"
)

// A recording may be broken, or written by somebody who wants to stop those who look
// at it: a report of it ends, with an error or with numbers as absurd as they are, and
// never takes the process with it.
func TestNumbersThatNobodyMeasured(t *testing.T) {
	whole, _ := synthetic.Run{File: `
title: Hostile
scenario: retrieve
question: Does a report end?
systems: [nginx, static]
link: {rate: 100Mbit, delay: 20ms}
data: {size: 64MiB}
retrieve: {concurrency: [1, 8], range: 1MiB, requests: 40}
repetitions: 3
`, Blocks: 3}.Write(t)
	for _, set := range []struct{ table, column string }{{"trials", "seconds"}, {"trials", "epoch_ns"}, {"results", "value"}, {"samples", "cpu"}, {"samples", "end_ns"}, {"summaries", "last_ns"}, {"windows", "second"}, {"links", "rtt"}, {"links", "rate"}} {
		for _, value := range []string{"1e12", "-1e300", "9e999", "-9223372036854775808", "9223372036854775807"} {
			t.Run(set.table+"."+set.column+"="+value, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "run")
				must(t, os.CopyFS(dir, os.DirFS(whole)))
				db, err := sql.Open("sqlite", filepath.Join(dir, "run.db"))
				must(t, err)
				_, err = db.Exec(fmt.Sprintf("UPDATE OR IGNORE %s SET %s = %s", set.table, set.column, value))
				must(t, err)
				must(t, db.Close())
				run, err := record.Open(dir)
				if err != nil {
					return
				}
				defer run.Close()
				rep, err := Build(run)
				if err != nil {
					t.Log(err)
					return
				}
				t.Log(rep.WriteHTML(io.Discard), rep.WriteText(io.Discard, 100), rep.WriteJSON(io.Discard))
			})
		}
	}
}
