package upload

import (
	"fmt"
	"math"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// uploadTotals adds up a load test from what it recorded.
type uploadTotals struct {
	tally
	adopted              int64 // objects, of those accepted
	begun                int64 // attempts
	touched              int64 // objects that an attempt was begun for
	missing              int64 // times that an accepted object was not there later
	verified, unverified int64
	accept               *record.Summary // of puts that were ok
	settled              *record.Summary // likewise to durable

	// File bytes that have crossed the link, and by when: of durable objects, and of all
	// accepted ones, without those of which the time of their put is not known.
	durableBytes, sentBytes int64
	durableAt               time.Duration
	resumed                 bool
}

// totalsOf adds up jobs, operations and events, in constant memory but for the objects
// that were fetched at the end.
func totalsOf(in *scenario.Measured) *uploadTotals {
	y := &uploadTotals{tally: newUploadTally(), accept: record.NewSummary(), settled: record.NewSummary()}
	fetched := map[uint32][]record.Op{}
	for op := range scenario.Stream(in.Ops) {
		y.ended(op)
		if op.Kind == record.OpGet && op.Outcome != record.Cancelled {
			fetched[op.Object] = append(fetched[op.Object], op)
		}
	}
	for job := range scenario.Stream(in.Jobs) {
		y.job(&job, fetched[uint32(job.Object)])
	}
	for e := range scenario.Stream(in.Events) {
		y.missing += missingObjects(e)
		y.resumed = y.resumed || e.Kind == eventResume
	}
	return y
}

// job takes what became of an object, and how it was fetched.
func (y *uploadTotals) job(job *record.Job, fetches []record.Op) {
	if job.State == record.JobMissing {
		return // it is to be put again
	}
	y.began(job)
	if job.Attempts > 0 {
		y.touched++
		y.begun += int64(job.Attempts)
	}
	if job.State != record.JobAccepted && job.State != record.JobDurable {
		y.givenUp(job.State)
		return
	}
	y.acceptedJob(job)
	if !job.Adopted {
		y.sentBytes += job.Size
		if job.State == record.JobDurable {
			y.durableBytes, y.durableAt = y.durableBytes+job.Size, max(y.durableAt, job.Durable)
		}
	}
	switch {
	case job.Adopted:
		y.adopted++
	case job.State == record.JobDurable:
		took(y.settled, job.Began, job.Durable)
		fallthrough
	default:
		took(y.accept, job.Began, job.Accepted)
	}
	for _, op := range fetches {
		if time.Duration(op.Start) < job.Accepted {
			continue // before it was missing, and put again
		}
		if op.Outcome == record.OK {
			y.verified++
		} else {
			y.unverified++
		}
		return
	}
}

// carried is the least rate, in file bytes per second, at which the link carried objects.
// A system that says when an object is durable may accept it into a buffer on this side
// of the link, and goes on between sessions, when the trial's clock may not.
func (y *uploadTotals) carried(in *scenario.Measured) float64 {
	bytes, at := y.sentBytes, y.last
	if in.LoadDetail(scenario.LoadSettles) > 0 {
		if y.resumed {
			return math.NaN()
		}
		bytes, at = y.durableBytes, y.durableAt
	}
	if d := in.Cell.Data; d.Copies > 1 || d.Duplicate > 0 || d.Directory != "" {
		return math.NaN() // what the system has already need not be sent
	}
	return float64(bytes) / (at - max(0, y.first)).Seconds()
}

// took adds a time to a summary.
func took(s *record.Summary, from, to time.Duration) {
	_ = s.Ops([]record.Op{{Start: scenario.Nanos(from), Intended: scenario.Nanos(from), LastByte: scenario.Nanos(to)}}) // never fails
}

// missingObjects is how many accepted objects an event says that a session has missed.
func missingObjects(e record.Event) (n int64) {
	if e.Kind == eventResume && e.What == whatMissing {
		_, _ = fmt.Sscanf(e.Detail, "%d", &n)
	}
	return n
}

// uploadFacts are the metrics of what became of objects, and of what that cost.
func uploadFacts(in *scenario.Measured, polls *pollTally, m map[string]float64, put func(string, float64)) {
	y := totalsOf(in)
	put("objects", in.LoadDetail(scenario.LoadObjects))
	put("accepted", float64(y.accepted))
	put("adopted", float64(y.adopted))
	put("failed", float64(y.failed))
	put("refused", float64(y.refused))
	put("unreadable", float64(y.unreadable))
	put("missing", float64(y.missing))
	put("accepted_bytes", float64(y.bytes))
	if in.LoadDetail(scenario.LoadSettles) > 0 {
		put("durable", float64(y.durable))
		put("not_durable", float64(y.accepted-y.durable))
	}
	if in.Cell.Upload.Verify > 0 {
		put("verified", float64(y.verified))
		put("verify_failed", float64(y.unverified)+in.LoadDetail(scenario.LoadNotCompared))
	}
	if y.finished > 0 {
		put("success_rate", 1-float64(y.failures)/float64(y.finished))
		put("puts_ended", float64(y.finished))
	}
	if y.touched > 0 {
		put("attempts_per_object", float64(y.begun)/float64(y.touched))
	}
	if s := y.accept; s.Count(record.Duration) > 0 {
		put("accept_p50", s.Quantile(record.Duration, 0.5))
		put("accept_p95", s.Quantile(record.Duration, 0.95))
	}
	if s := y.settled; s.Count(record.Duration) > 0 {
		put("durable_p50", s.Quantile(record.Duration, 0.5))
		put("durable_p95", s.Quantile(record.Duration, 0.95))
	}
	if attempts := in.LoadDetail(scenario.LoadAttempts); attempts > 0 {
		put("generator_cpu_per_op", in.Load.CPU/attempts)
	}
	put("generator_rss_peak", in.Load.RSSPeak)
	first := max(0, y.first)
	if seconds := (y.last - first).Seconds(); y.accepted > 0 && seconds > 0 {
		put("file_rate", float64(y.accepted)/seconds)
		put("file_bandwidth", float64(y.bytes)/seconds)
	}
	if p, ok := scenario.PathOf(in.Link); ok {
		put("bandwidth_line", p.Rate)
		put("line_share", y.carried(in)/p.Rate)
		if p.RTT > 0 {
			put("wait_line", p.RTT)
		}
	}
	delete(m, "absolute_bandwidth") // of another window
	if v, ok := polls.bandwidth(first.Seconds(), y.last.Seconds()); ok {
		put("absolute_bandwidth", v)
	}
	if gained, ok := m["absolute_bytes"]; ok && y.accepted > 0 {
		put("absolute_per_file", gained/float64(y.accepted))
		put("expansion", gained/float64(y.bytes))
		if gained > 0 {
			put("storage_efficiency", float64(y.bytes)/gained)
		}
	}
}
