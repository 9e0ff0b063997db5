package export

import (
	"strconv"

	"github.com/plimsoll-project/plimsoll/record"
)

// MarkRow is how far one node of a swarm was; docs/results.md describes the
// columns. Times are nanoseconds since the trial's epoch; nil: the node does not
// say.
type MarkRow struct {
	Trial    int64  `parquet:"trial,delta"`
	Node     int64  `parquet:"node,delta"`
	Before   int64  `parquet:"before_ns,delta"`
	Start    int64  `parquet:"start_ns,delta"`
	End      int64  `parquet:"end_ns,delta"`
	Verified int64  `parquet:"verified,delta"`
	Written  *int64 `parquet:"written,optional"`
	Received *int64 `parquet:"received,optional"`
	Sent     *int64 `parquet:"sent,optional"`
	Peers    *int64 `parquet:"peers,optional"`
	Complete bool   `parquet:"complete"`
	Trouble  string `parquet:"trouble,dict"`
}

var markTable = tableOf[MarkRow]{
	head: []string{"trial", "node", "before_ns", "start_ns", "end_ns", "verified", "written", "received", "sent", "peers", "complete", "trouble"},
	text: func(r *MarkRow) []string {
		known := func(v *int64) string {
			if v == nil {
				return ""
			}
			return integerText(*v)
		}
		return []string{integerText(r.Trial), integerText(r.Node), integerText(r.Before), integerText(r.Start), integerText(r.End), integerText(r.Verified),
			known(r.Written), known(r.Received), known(r.Sent), known(r.Peers), strconv.FormatBool(r.Complete), r.Trouble}
	},
	rows: func(run *record.Reader, do func(*MarkRow) error) error {
		trials, err := run.Trials()
		if err != nil {
			return err
		}
		known := func(v int64) *int64 {
			if v < 0 {
				return nil
			}
			return &v
		}
		for _, t := range trials {
			for m, err := range run.Marks(t.ID) {
				if err != nil {
					return err
				}
				if err := do(&MarkRow{t.ID, int64(m.Node), int64(m.Before), int64(m.Start), int64(m.End), m.Verified,
					known(m.Written), known(m.Received), known(m.Sent), known(int64(m.Peers)), m.Complete, m.Trouble}); err != nil {
					return err
				}
			}
		}
		return nil
	},
}
