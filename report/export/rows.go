package export

import (
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// OpRow is one operation in Parquet; docs/results.md describes the columns.
type OpRow struct {
	Trial     int64  `parquet:"trial,delta"`
	Cell      string `parquet:"cell,dict"`
	Block     int32  `parquet:"block"`
	Warmup    bool   `parquet:"warmup"`
	Kind      string `parquet:"kind,dict"`
	Outcome   string `parquet:"outcome,dict"`
	Status    int32  `parquet:"status"`
	Class     string `parquet:"class,dict"`
	Worker    int64  `parquet:"worker"`
	Object    int64  `parquet:"object"`
	Offset    int64  `parquet:"offset"`
	Length    int64  `parquet:"length"`
	Bytes     int64  `parquet:"bytes"`
	Intended  int64  `parquet:"intended_ns,delta"`
	Start     int64  `parquet:"start_ns,delta"`
	FirstByte int64  `parquet:"first_byte_ns,delta"`
	LastByte  int64  `parquet:"last_byte_ns,delta"`
}

var opTable = ofTrials((*record.Reader).Ops, func(t *record.Trial, op *record.Op, do func(*OpRow) error) error {
	return do(&OpRow{
		t.ID, t.Cell, int32(t.Block), t.Warmup, op.Kind.String(), op.Outcome.String(), int32(op.Status), op.Class,
		int64(op.Worker), int64(op.Object), op.Offset, op.Length, op.Bytes, op.Intended, op.Start, op.FirstByte,
		op.LastByte,
	})
})

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

var pollTable = ofTrials((*record.Reader).Polls, func(t *record.Trial, p *record.Poll, do func(*PollRow) error) error {
	return do(&PollRow{t.ID, p.Seq, int64(p.Intended), int64(p.Start), int64(p.End), int64(p.Missed)})
})

// CallRow is one call of a poll.
type CallRow struct {
	Trial int64  `parquet:"trial,delta"`
	Poll  int64  `parquet:"poll,delta"`
	Call  string `parquet:"call,dict"`
	Start int64  `parquet:"start_ns,delta"`
	End   int64  `parquet:"end_ns,delta"`
	Error string `parquet:"error,dict"`
}

var callTable = ofTrials((*record.Reader).Polls, func(t *record.Trial, p *record.Poll, do func(*CallRow) error) error {
	for _, c := range p.Calls {
		if err := do(&CallRow{t.ID, p.Seq, c.Name, int64(c.Start), int64(c.End), c.Error}); err != nil {
			return err
		}
	}
	return nil
})

// ReadingRow is one number of a poll.
type ReadingRow struct {
	Trial   int64    `parquet:"trial,delta"`
	Poll    int64    `parquet:"poll,delta"`
	Reading string   `parquet:"reading,dict"`
	Value   *float64 `parquet:"value,optional"` // nil: not to be used
	Exact   string   `parquet:"exact,dict"`
	Bad     string   `parquet:"bad,dict"`
}

var readingTable = ofTrials((*record.Reader).Polls,
	func(t *record.Trial, p *record.Poll, do func(*ReadingRow) error) error {
		for _, v := range p.Readings {
			row := ReadingRow{Trial: t.ID, Poll: p.Seq, Reading: v.Name, Exact: v.Exact, Bad: v.Bad}
			if v.Bad == "" {
				row.Value = &v.Value
			}
			if err := do(&row); err != nil {
				return err
			}
		}
		return nil
	})

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

var jobTable = ofTrials((*record.Reader).Jobs, func(t *record.Trial, j *record.Job, do func(*JobRow) error) error {
	return do(&JobRow{
		t.ID, j.Object, string(j.State), int64(j.Attempts), j.Name, j.Ref, j.Size, j.SHA256,
		int64(j.Began), unless[time.Duration](j.Accepted, 0), unless[time.Duration](j.Durable, 0), j.Adopted, j.Error,
	})
})

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

var markTable = ofTrials((*record.Reader).Marks, func(t *record.Trial, m *record.Mark, do func(*MarkRow) error) error {
	return do(&MarkRow{
		t.ID, int64(m.Node), int64(m.Before), int64(m.Start), int64(m.End), m.Verified,
		unless(m.Written, -1), unless(m.Received, -1), unless(m.Sent, -1), unless(m.Peers, -1), m.Complete, m.Trouble,
	})
})

// unless is a number that is not known where it is none.
func unless[T ~int | ~int64](v, none T) *int64 {
	if v == none {
		return nil
	}
	n := int64(v)
	return &n
}
