package studylog

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// Classes of leechers whose end is not known.
const (
	classLost  = "its last records are missing"
	classCut   = "its end was not recorded"
	classEnded = "the trial ended in an error"
)

// inTime is in the words of the study's runner when a download took too long.
const inTime = "did not complete in time"

// fetch is what the log says about one leecher.
type fetch struct {
	op      record.Op
	marks   []record.Mark
	earlier time.Duration // by how much its first record came before its request: the clocks disagree
	again   int           // pieces that it got more than once
}

// fetchOf reads a leecher's records. The trial's epoch is the first request of
// any of its leechers; lastSeen is the last record of any of them.
func (t *trial) fetchOf(c *config, name string, node int, epoch, lastSeen time.Time) fetch {
	start := t.leechers[name].start
	if start.IsZero() {
		start = epoch
	}
	begun := start.Sub(epoch)
	f := fetch{op: record.Op{Kind: record.OpFetch, Worker: uint32(node), Length: c.FileSize, Intended: int64(begun), Start: int64(begun)}}
	progress := newProgress(c)
	before, last := begun, begun
	percent := int64(0)
	all := t.metrics[name]
	for i, m := range all {
		at := time.Duration(m.at - epoch.UnixNano())
		if at < begun {
			f.earlier = max(f.earlier, begun-at)
			at = begun
		}
		if i == 0 {
			f.op.FirstByte = int64(max(at, 1)) // 0 is none
			at = time.Duration(f.op.FirstByte)
		}
		at = max(at, time.Duration(f.op.FirstByte))
		progress.add(m.value)
		if i+1 < len(all) && all[i+1].at == m.at {
			continue // what has the same time is one mark
		}
		done := progress.complete()
		if now := progress.bytes * 100 / c.FileSize; now > percent || len(f.marks) == 0 || done || i == len(all)-1 {
			percent = now
			f.marks = append(f.marks, record.Mark{Node: node, Before: before, Start: at, End: at, Verified: progress.bytes,
				Written: -1, Received: -1, Sent: -1, Peers: -1, Complete: done})
		}
		before, last = at, at
		if done {
			break
		}
	}
	f.again = progress.again
	f.op.Bytes, f.op.LastByte = progress.bytes, int64(last)
	if !progress.complete() {
		f.op.Outcome, f.op.Class = t.fate()
		until := last
		if f.op.Class != classLost { // it was watched on in vain
			until = max(until, lastSeen.Sub(epoch))
		}
		f.op.LastByte = int64(max(until, begun))
	}
	return f
}

// fate is the outcome of a leecher that did not complete, by the records.
func (t *trial) fate() (record.Outcome, string) {
	s := t.stage("downloading")
	failed := ""
	for _, s := range t.stages {
		if s.err != "" && s.name != "deleting" {
			failed = s.err
		}
	}
	if t.status != nil && t.status.Error != nil {
		failed = *t.status.Error
	}
	switch {
	case s != nil && !s.end.IsZero() && s.err == "":
		return record.InFlight, classLost
	case strings.Contains(failed, inTime):
		return record.Deadline, "deadline"
	case failed != "":
		return record.InFlight, classEnded
	}
	return record.InFlight, classCut
}

// progress is how much of the content a leecher has, by its download metrics. A
// unit of 1 means that they count bytes; a larger one that each names a piece of
// that length, in the order of arrival.
type progress struct {
	size, unit int64
	pieces     map[int64]bool
	bytes      int64
	again      int
}

func newProgress(c *config) *progress {
	p := &progress{size: c.FileSize, unit: c.Unit}
	if p.unit > 1 {
		p.pieces = map[int64]bool{}
	}
	return p
}

func (p *progress) add(value float64) {
	if p.unit == 1 {
		p.bytes = max(p.bytes, min(int64(math.Round(value)), p.size))
		if p.bytes == lastStep(p.size) {
			p.bytes = p.size
		}
		return
	}
	piece := int64(math.Round(value))
	if p.pieces[piece] {
		p.again++
		return
	}
	p.pieces[piece] = true
	p.bytes = min(int64(len(p.pieces))*p.unit, p.size)
}

func (p *progress) complete() bool { return p.bytes == p.size }

// lastStep is the last value that an agent of the study logs for a file: it logs
// each whole step of a hundredth, rounded down, and never what remains.
func lastStep(size int64) int64 {
	step := max(1, size/100)
	return size / step * step
}

func (f *fetch) clockNote(name string) string {
	return fmt.Sprintf("the clock of %s is at least %s behind the runner's: its first record came before the request", name, record.Span(f.earlier))
}
