package record

import (
	"database/sql"
	"fmt"
	"iter"
	"time"
)

// Mark is how far one node of a swarm was when it was asked. The state reported
// lies between the poll's start and its end; what it reports for the first time
// happened after Before, the start of the last poll that did not report it yet.
//
// In the scenario sync there is one node, the fresh one, and Verified is the height
// of its chain, in blocks, Written that up to which everything that subscribes to
// the chain has followed, Received and Sent what has crossed the node's link since
// it was started, in bytes of IP packets.
//
// Not every poll leaves a mark: those do in which a further percent of the
// content was verified, anything came to an end, or trouble began.
type Mark struct {
	Node     int           // index into the trial's nodes, see DetailRole
	Before   time.Duration // start of the poll of this node whose mark this follows, since the trial's epoch; the node's start when there was none
	Start    time.Duration // of the poll that reported it
	End      time.Duration
	Verified int64  // bytes of the content that the node has and has checked
	Written  int64  // bytes of them that it says are on its disk; −1: it does not report it
	Received int64  // payload bytes received, duplicates included; −1: it does not report it
	Sent     int64  // payload bytes sent; −1 likewise
	Peers    int    // connected; −1 likewise
	Complete bool   // the node says that it has all
	Trouble  string // why it cannot go on, in its own words
}

// Marks records marks, in the order in which their polls ended as far as
// possible. They are written within a second. It refuses marks that cannot be.
func (w *TrialWriter) Marks(marks []Mark) error {
	for i := range marks {
		if err := marks[i].check(); err != nil {
			return w.errorf("%w", err)
		}
	}
	return w.locked(func() error {
		if err := w.run.begin(); err != nil {
			return err
		}
		for _, m := range marks {
			err := w.run.exec(`INSERT INTO marks (trial, seq, node, before_ns, start_ns, end_ns, verified, written, received, sent, peers, complete, trouble)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				w.trial.ID, w.marked, m.Node, int64(m.Before), int64(m.Start), int64(m.End), m.Verified,
				reported(m.Written), reported(m.Received), reported(m.Sent), reported(int64(m.Peers)), m.Complete, m.Trouble)
			if err != nil {
				return err
			}
			w.marked++
		}
		return nil
	})
}

func (m *Mark) check() error {
	why := ""
	switch {
	case m.Node < 0:
		why = "a node is counted from 0"
	case m.End < m.Start:
		why = "its poll ended before it started"
	case m.Before > m.Start:
		why = "it came before the poll that it follows"
	case m.Before < -time.Duration(maxNs) || m.End > time.Duration(maxNs):
		why = "its times are more than 10 years from the epoch"
	case m.Verified < 0 || min(m.Written, m.Received, m.Sent, int64(m.Peers)) < -1:
		why = "less than nothing"
	default:
		return nil
	}
	return fmt.Errorf("impossible mark: %s: %+v", why, *m)
}

// reported is NULL for what a node does not report.
func reported(v int64) sql.NullInt64 { return sql.NullInt64{Int64: v, Valid: v >= 0} }

func orUntold(v sql.NullInt64) int64 {
	if !v.Valid {
		return -1
	}
	return v.Int64
}

// marksPage is how many marks are read at a time.
const marksPage = 1000

// Marks reads a trial's marks in the order in which they were recorded, in
// constant memory. A run made before schema 4 has none. After an error it ends.
func (r *Reader) Marks(trial int64) iter.Seq2[Mark, error] {
	return func(yield func(Mark, error) bool) {
		there, err := hasTable(r.db, "marks")
		after := int64(-1)
		page := make([]Mark, 0, marksPage)
		for there && err == nil {
			page = page[:0]
			err = r.each(`SELECT seq, node, before_ns, start_ns, end_ns, verified, written, received, sent, peers, complete, trouble
				FROM marks WHERE trial = ? AND seq > ? ORDER BY seq LIMIT ?`, []any{trial, after, marksPage}, func(rows *sql.Rows) error {
				var m Mark
				var written, received, sent, peers sql.NullInt64
				err := rows.Scan(&after, &m.Node, &m.Before, &m.Start, &m.End, &m.Verified, &written, &received, &sent, &peers, &m.Complete, &m.Trouble)
				m.Written, m.Received, m.Sent, m.Peers = orUntold(written), orUntold(received), orUntold(sent), int(orUntold(peers))
				page = append(page, m)
				return err
			})
			if err != nil {
				break
			}
			for _, m := range page {
				if !yield(m, nil) {
					return
				}
			}
			if len(page) < marksPage {
				return
			}
		}
		if err != nil {
			yield(Mark{}, r.errorf(fmt.Sprintf("marks of trial %d", trial), err))
		}
	}
}
