package upload

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/system"
)

// accepted is an object that the system accepted or, of very many, some that followed each
// other. Times are seconds since the trial's epoch; NaN: not known.
type accepted struct {
	at, took float64 // of the last acceptance, and since the last put of that object began
	settled  float64 // until its full redundancy
	stored           // they alone and, once all are in their order, with all before them
}

// mostAccepted is how many are kept one by one: of ten times as many, each is ten objects, and
// a report of any number takes no more than 50 MB.
const mostAccepted = 1 << 20

// objects is what became of the objects of a trial.
type objects struct {
	all    []accepted // in that order
	states map[record.JobState]int64

	limit float64 // seconds that an object may take to its full redundancy

	n, touched, attempts, retried, adopted int64
	sent                                   int64           // bytes that a put is known to have brought
	verified, unverified                   int64           // objects fetched at the end
	missing                                int64           // times that an accepted object was not there later
	late                                   int64           // at their full redundancy, and not in time
	noRoom                                 int64           // not stored because the system had no room
	accept, settle                         *record.Summary // times of those that a put is known to have brought
	resumed                                bool

	// Bytes of objects at their full redundancy, the moment of the last of them, that of
	// the last acceptance, and the latest of all.
	full, fullAt, lastAt, latest float64
	putCounts
}

// putCounts are the attempts of all sessions of a trial.
type putCounts struct {
	finished int64         // that came to an end of their own
	failures int64         // of them, through the server
	first    time.Duration // when the first began; negative: none did
}

var noPuts = putCounts{first: -1}

// read takes the operations of earlier sessions, and says how objects were last fetched.
func (p *putCounts) read(ops iter.Seq[record.Op]) map[int]fetch {
	fetched := map[int]fetch{}
	for op := range ops {
		p.ended(op)
		if op.Kind == record.OpGet && op.Outcome != record.Cancelled {
			fetched[int(op.Object)] = fetch{time.Duration(op.Start), op.Outcome == record.OK}
		}
	}
	return fetched
}

// ended takes an operation; only puts are attempts.
func (p *putCounts) ended(op record.Op) {
	if op.Kind != record.OpPut {
		return
	}
	p.begun(time.Duration(op.Start))
	if op.Outcome.Finished() {
		p.finished++
	}
	if op.Outcome.ServerFailure() {
		p.failures++
	}
}

// begun notes when an attempt began: jobs know the latest at an object, operations
// those of the last second of a killed session not.
func (p *putCounts) begun(at time.Duration) {
	if p.first < 0 || at < p.first {
		p.first = at
	}
}

// stored is what was accepted up to a moment.
type stored struct {
	objects        int64
	bytes, rounded float64 // file bytes, and those in whole sectors
}

func (s stored) plus(other stored) stored {
	return stored{s.objects + other.objects, s.bytes + other.bytes, s.rounded + other.rounded}
}

func (s stored) less(other stored) stored {
	return stored{s.objects - other.objects, s.bytes - other.bytes, s.rounded - other.rounded}
}

// fetch is how an object was fetched at the end.
type fetch struct {
	at time.Duration
	ok bool
}

// readObjects reads a trial's jobs, operations and events. latest is a moment up to which
// something was recorded; rounded is what an object of a size takes on the servers.
func readObjects(in *scenario.Measured, latest float64, rounded func(int64) int64) *objects {
	s := &objects{states: map[record.JobState]int64{}, latest: latest, putCounts: noPuts, accept: record.NewSummary(),
		settle: record.NewSummary()}
	if u := in.Cell.Upload; u != nil {
		s.limit = u.Settle.Seconds()
	}
	fetched := s.read(in.Ops)
	for j := range in.Jobs {
		s.job(&j, rounded)
		got, was := fetched[int(j.Object)]
		switch {
		case !was || got.at < j.Accepted: // it was missing then, and was put again
		case got.ok:
			s.verified++
		default:
			s.unverified++
		}
	}
	for e := range in.Events {
		if e.Kind != eventResume {
			continue
		}
		s.resumed = true
		if n := int64(0); e.What == whatMissing {
			_, _ = fmt.Sscanf(e.Detail, "%d", &n)
			s.missing += n
		}
	}
	s.sort()
	for i := range s.all {
		s.all[i].stored = s.upTo(i).plus(s.all[i].stored)
		s.lastAt = s.all[i].at
	}
	return s
}

func (s *objects) sort() {
	slices.SortStableFunc(s.all, func(a, b accepted) int { return cmp.Compare(a.at, b.at) })
}

// add keeps what was accepted. Where that is too much, each two that follow each other become one.
func (s *objects) add(x accepted) {
	if s.all = append(s.all, x); len(s.all) < mostAccepted {
		return
	}
	s.sort()
	for i := range len(s.all) / 2 {
		pair := s.all[2*i : 2*i+2]
		pair[1].stored = pair[0].plus(pair[1].stored)
		s.all[i] = pair[1]
	}
	s.all = s.all[:len(s.all)/2]
}

// upTo is what the first n of all brought together.
func (s *objects) upTo(n int) stored {
	if n == 0 {
		return stored{}
	}
	return s.all[n-1].stored
}

// by is what was accepted by a moment.
func (s *objects) by(at float64) stored {
	return s.upTo(sort.Search(len(s.all), func(i int) bool { return s.all[i].at > at }))
}

// accepted is all that was.
func (s *objects) accepted() stored { return s.upTo(len(s.all)) }

// notDurable is how many accepted objects are not at their full redundancy in time.
func (s *objects) notDurable(in *scenario.Measured) (n int64) {
	for j := range in.Jobs {
		if j.State == record.JobAccepted && s.latest-j.Accepted.Seconds() > s.limit {
			n++
		}
	}
	return n
}

// job takes what became of an object.
func (s *objects) job(j *record.Job, rounded func(int64) int64) {
	began, at, full := j.Began.Seconds(), j.Accepted.Seconds(), j.Durable.Seconds()
	s.n++
	s.states[j.State]++
	s.latest = max(s.latest, began, at, full)
	if j.State == record.JobMissing {
		return // it is to be put again
	}
	if j.Attempts > 0 {
		s.touched++
		s.attempts += int64(j.Attempts)
		s.begun(j.Began)
	}
	if j.Attempts > 1 {
		s.retried++
	}
	if !isStored(j.State) {
		if j.State != record.JobUnreadable && strings.Contains(j.Error, system.ErrQuota.Error()) {
			s.noRoom++
		}
		return
	}
	x := accepted{at, nan, nan, stored{1, float64(j.Size), float64(rounded(j.Size))}}
	if j.Adopted { // its times are those of the finding
		s.adopted++
	} else {
		x.took = at - began
		s.sent += j.Size
		add(s.accept, j.Began, j.Accepted)
	}
	if j.State == record.JobDurable && !j.Adopted {
		x.settled = full - began
		add(s.settle, j.Began, j.Durable)
		s.full, s.fullAt = s.full+float64(j.Size), max(s.fullAt, full)
		if full-at > s.limit {
			s.late++
		}
	}
	s.add(x)
}

// add adds a time to a summary.
func add(s *record.Summary, from, to time.Duration) {
	// never fails
	_ = s.Ops([]record.Op{{Start: scenario.Nanos(from), Intended: scenario.Nanos(from), LastByte: scenario.Nanos(to)}})
}

// began is when the first put did.
func (s *objects) began() float64 { return max(0, s.first.Seconds()) }

// carried is the least rate, in file bytes per second, at which the link carried objects.
// A system that says when an object is durable may accept it into a buffer on this side
// of the link, and goes on between sessions, when the trial's clock may not.
func (s *objects) carried(in *scenario.Measured) float64 {
	if math.IsNaN(in.Detail(record.DetailLoad, scenario.LoadObjects)) {
		return math.NaN() // an unfinished or old trial does not say whether its system buffers
	}
	bytes, at := float64(s.sent), s.lastAt
	if in.LoadDetail(scenario.LoadSettles) > 0 {
		if s.resumed {
			return math.NaN()
		}
		bytes, at = s.full, s.fullAt
	}
	if d := in.Cell.Data; d.Copies > 1 || d.Directory != "" {
		return math.NaN() // what the system has already need not be sent
	}
	return bytes / (at - s.began())
}

// measure puts the numbers of what became of objects, and of what that cost.
func (s *objects) measure(in *scenario.Measured, put func(string, float64)) {
	put("objects", in.Detail(record.DetailLoad, scenario.LoadObjects))
	all := s.accepted()
	put("accepted", float64(all.objects))
	put("accepted_bytes", all.bytes)
	put("adopted", float64(s.adopted))
	put("failed", float64(s.states[record.JobFailed]))
	put("refused", float64(s.states[record.JobRefused]))
	put("unreadable", float64(s.states[record.JobUnreadable]))
	put("missing", float64(s.missing))
	if in.LoadDetail(scenario.LoadSettles) > 0 {
		put("durable", float64(s.states[record.JobDurable]))
		put("not_durable", float64(s.states[record.JobAccepted]))
	}
	if in.Cell.Upload.Verify > 0 {
		put("verified", float64(s.verified))
		put("verify_failed", float64(s.unverified)+in.LoadDetail(scenario.LoadNotCompared))
	}
	if s.finished > 0 {
		put("success_rate", 1-float64(s.failures)/float64(s.finished))
		put("puts_ended", float64(s.finished))
	}
	put("attempts_per_object", float64(s.attempts)/float64(s.touched))
	put("accept_p50", s.accept.Quantile(record.Duration, 0.5))
	put("accept_p95", s.accept.Quantile(record.Duration, 0.95))
	put("durable_p50", s.settle.Quantile(record.Duration, 0.5))
	put("durable_p95", s.settle.Quantile(record.Duration, 0.95))
	put("generator_cpu_per_op", in.Load.CPU/in.LoadDetail(scenario.LoadAttempts))
	if in.Load.RSSPeak > 0 {
		put("generator_rss_peak", in.Load.RSSPeak)
	}
	if seconds := s.lastAt - s.began(); seconds > 0 {
		put("file_rate", float64(all.objects)/seconds)
		put("file_bandwidth", all.bytes/seconds)
	}
	if p, ok := scenario.PathOf(in.Link); ok {
		put("bandwidth_line", p.Rate)
		put("line_share", s.carried(in)/p.Rate)
	}
}
