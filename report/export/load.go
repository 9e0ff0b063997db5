package export

import (
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/plimsoll-project/plimsoll/record"
)

// PollRow is one poll of a run; docs/results.md describes the columns. Times are
// nanoseconds since the trial's epoch.
type PollRow struct {
	Trial    int64 `parquet:"trial,delta"`
	Poll     int64 `parquet:"poll,delta"`
	Intended int64 `parquet:"intended_ns,delta"`
	Start    int64 `parquet:"start_ns,delta"`
	End      int64 `parquet:"end_ns,delta"`
	Missed   int64 `parquet:"missed"`
}

// CallRow is one call of a poll.
type CallRow struct {
	Trial int64  `parquet:"trial,delta"`
	Poll  int64  `parquet:"poll,delta"`
	Call  string `parquet:"call,dict"`
	Start int64  `parquet:"start_ns,delta"`
	End   int64  `parquet:"end_ns,delta"`
	Error string `parquet:"error,dict"`
}

// ReadingRow is one number of a poll.
type ReadingRow struct {
	Trial   int64    `parquet:"trial,delta"`
	Poll    int64    `parquet:"poll,delta"`
	Reading string   `parquet:"reading,dict"`
	Value   *float64 `parquet:"value,optional"` // nil: not to be used
	Exact   string   `parquet:"exact,dict"`
	Bad     string   `parquet:"bad,dict"`
}

// JobRow is what became of one object.
type JobRow struct {
	Trial    int64  `parquet:"trial,delta"`
	Object   int64  `parquet:"object,delta"`
	State    string `parquet:"state,dict"`
	Attempts int64  `parquet:"attempts"`
	Name     string `parquet:"name"`
	Ref      string `parquet:"ref"`
	Size     int64  `parquet:"size"`
	SHA256   string `parquet:"sha256"`
	Began    int64  `parquet:"began_ns,delta"`
	Accepted *int64 `parquet:"accepted_ns,optional"`
	Durable  *int64 `parquet:"durable_ns,optional"`
	Adopted  bool   `parquet:"adopted"`
	Error    string `parquet:"error,dict"`
}

// tableOf is what is exported of a run beside its trials: rows in their order.
type tableOf[T any] struct {
	head []string
	text func(*T) []string
	rows func(run *record.Reader, do func(*T) error) error
}

// eachPoll calls do with each poll of a run.
func eachPoll(run *record.Reader, do func(trial int64, p *record.Poll) error) error {
	trials, err := run.Trials()
	if err != nil {
		return err
	}
	for _, t := range trials {
		for p, err := range run.Polls(t.ID) {
			if err != nil {
				return err
			}
			if err := do(t.ID, &p); err != nil {
				return err
			}
		}
	}
	return nil
}

func integerText(v int64) string { return strconv.FormatInt(v, 10) }

var pollTable = tableOf[PollRow]{
	head: []string{"trial", "poll", "intended_ns", "start_ns", "end_ns", "missed"},
	text: func(r *PollRow) []string {
		return []string{integerText(r.Trial), integerText(r.Poll), integerText(r.Intended), integerText(r.Start), integerText(r.End), integerText(r.Missed)}
	},
	rows: func(run *record.Reader, do func(*PollRow) error) error {
		return eachPoll(run, func(trial int64, p *record.Poll) error {
			return do(&PollRow{trial, p.Seq, int64(p.Intended), int64(p.Start), int64(p.End), int64(p.Missed)})
		})
	},
}

var callTable = tableOf[CallRow]{
	head: []string{"trial", "poll", "call", "start_ns", "end_ns", "error"},
	text: func(r *CallRow) []string {
		return []string{integerText(r.Trial), integerText(r.Poll), r.Call, integerText(r.Start), integerText(r.End), r.Error}
	},
	rows: func(run *record.Reader, do func(*CallRow) error) error {
		return eachPoll(run, func(trial int64, p *record.Poll) error {
			for _, c := range p.Calls {
				if err := do(&CallRow{trial, p.Seq, c.Name, int64(c.Start), int64(c.End), c.Error}); err != nil {
					return err
				}
			}
			return nil
		})
	},
}

var readingTable = tableOf[ReadingRow]{
	head: []string{"trial", "poll", "reading", "value", "exact", "bad"},
	text: func(r *ReadingRow) []string {
		value := ""
		if r.Value != nil {
			value = plain(*r.Value)
		}
		return []string{integerText(r.Trial), integerText(r.Poll), r.Reading, value, r.Exact, r.Bad}
	},
	rows: func(run *record.Reader, do func(*ReadingRow) error) error {
		return eachPoll(run, func(trial int64, p *record.Poll) error {
			for _, v := range p.Readings {
				row := ReadingRow{Trial: trial, Poll: p.Seq, Reading: v.Name, Exact: v.Exact, Bad: v.Bad}
				if v.Bad == "" {
					row.Value = &v.Value
				}
				if err := do(&row); err != nil {
					return err
				}
			}
			return nil
		})
	},
}

var jobTable = tableOf[JobRow]{
	head: []string{"trial", "object", "state", "attempts", "name", "ref", "size", "sha256", "began_ns", "accepted_ns", "durable_ns", "adopted", "error"},
	text: func(r *JobRow) []string {
		known := func(v *int64) string {
			if v == nil {
				return ""
			}
			return integerText(*v)
		}
		return []string{integerText(r.Trial), integerText(r.Object), r.State, integerText(r.Attempts), r.Name, r.Ref, integerText(r.Size), r.SHA256,
			integerText(r.Began), known(r.Accepted), known(r.Durable), strconv.FormatBool(r.Adopted), r.Error}
	},
	rows: func(run *record.Reader, do func(*JobRow) error) error {
		trials, err := run.Trials()
		if err != nil {
			return err
		}
		known := func(d time.Duration) *int64 {
			if d == 0 {
				return nil
			}
			v := int64(d)
			return &v
		}
		for _, t := range trials {
			for j, err := range run.Jobs(t.ID) {
				if err != nil {
					return err
				}
				if err := do(&JobRow{t.ID, j.Object, string(j.State), int64(j.Attempts), j.Name, j.Ref, j.Size, j.SHA256, int64(j.Began), known(j.Accepted), known(j.Durable), j.Adopted, j.Error}); err != nil {
					return err
				}
			}
		}
		return nil
	},
}

// csvTo streams the rows as CSV, in constant memory.
func (t tableOf[T]) csvTo(run *record.Reader, w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(t.head); err != nil {
		return err
	}
	if err := t.rows(run, func(r *T) error { return out.Write(t.text(r)) }); err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// parquetTo streams the rows as Parquet, in constant memory.
func (t tableOf[T]) parquetTo(run *record.Reader, w io.Writer) error {
	out := parquet.NewGenericWriter[T](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(opsGroup))
	if err := t.rows(run, func(r *T) error { _, err := out.Write([]T{*r}); return err }); err != nil {
		return err
	}
	return out.Close()
}

// Tables are what a load test's polls and jobs and a swarm's marks can be
// exported as, by name of the format.
func Tables() map[string]func(*record.Reader, io.Writer) error {
	return map[string]func(*record.Reader, io.Writer) error{
		"polls-csv": pollTable.csvTo, "polls-parquet": pollTable.parquetTo,
		"calls-csv": callTable.csvTo, "calls-parquet": callTable.parquetTo,
		"readings-csv": readingTable.csvTo, "readings-parquet": readingTable.parquetTo,
		"jobs-csv": jobTable.csvTo, "jobs-parquet": jobTable.parquetTo,
		"marks-csv": markTable.csvTo, "marks-parquet": markTable.parquetTo,
	}
}
