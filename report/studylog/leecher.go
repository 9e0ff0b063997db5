package studylog

import (
	"math"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// Classes of leechers with an unknown end.
const (
	classLost  = "its last records are missing"
	classCut   = "its end was not recorded"
	classEnded = "the trial ended in an error"
)

// inTime is part of the message of the study's runner if a download took too long.
const inTime = "did not complete in time"

// fetch is what the log says about one leecher.
type fetch struct {
	op      record.Op
	marks   []record.Mark
	earlier time.Duration // by how much its first record precedes its request, because clocks disagree
}

// fetchOf evaluates a leecher's records. The trial's epoch is the first request of any of its
// leechers; lastSeen is the last record of any of them.
func (t *trial) fetchOf(c *config, name string, node int, epoch, lastSeen time.Time) fetch {
	begun := time.Duration(0)
	if start := t.leechers[name].start; !start.IsZero() {
		begun = start.Sub(epoch)
	}
	f := fetch{op: record.Op{Kind: record.OpFetch, Worker: uint32(node), Length: c.FileSize, Intended: int64(begun),
		Start: int64(begun)}}
	pieces, last, percent := map[int64]bool{}, begun, int64(-1)
	all := t.progress[name]
	for i, m := range all {
		at := time.Duration(m.at - epoch.UnixNano())
		f.earlier = max(f.earlier, begun-at)
		at = max(at, begun, 1) // a first byte at 0 would be none
		if i == 0 {
			f.op.FirstByte = int64(at)
		}
		if c.Unit == 1 { // bytes
			f.op.Bytes = max(f.op.Bytes, wholeAt(int64(math.Round(m.value)), c.FileSize))
		} else {
			pieces[int64(math.Round(m.value))] = true // one that was bad comes again
			f.op.Bytes = min(int64(len(pieces))*c.Unit, c.FileSize)
		}
		if i+1 < len(all) && all[i+1].at == m.at {
			continue // what has the same time is one mark
		}
		done := f.op.Bytes == c.FileSize
		if now := f.op.Bytes * 100 / c.FileSize; now > percent || done || i == len(all)-1 {
			percent = now
			f.marks = append(f.marks, record.Mark{Node: node, Before: last, Start: at, End: at, Verified: f.op.Bytes,
				Written: -1, Received: -1, Sent: -1, Peers: -1, Complete: done})
		}
		if last = at; done {
			break
		}
	}
	if f.op.Bytes < c.FileSize {
		f.op.Outcome, f.op.Class = t.fate()
		if f.op.Class != classLost { // it was watched on in vain
			last = max(last, lastSeen.Sub(epoch))
		}
	}
	f.op.LastByte = int64(last)
	return f
}

// fate returns the outcome of a leecher that did not complete.
func (t *trial) fate() (record.Outcome, string) {
	completed, failed := false, ""
	for _, e := range t.said {
		completed = completed || e.Stage == "downloading" && e.Boundary == "end" && e.Error == ""
		if e.Error != "" && e.Stage != "deleting" {
			failed = e.Error
		}
	}
	switch {
	case completed:
		return record.InFlight, classLost
	case strings.Contains(failed, inTime):
		return record.Deadline, "deadline"
	case failed != "":
		return record.InFlight, classEnded
	}
	return record.InFlight, classCut
}

// wholeAt returns how much of a file a leecher has if it reports so many bytes. The study's agents
// report whole percents, rounded down, and never the remainder.
func wholeAt(bytes, size int64) int64 {
	step := max(1, size/100)
	if bytes >= size/step*step {
		return size
	}
	return bytes
}
