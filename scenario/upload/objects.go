package upload

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
)

// accepted is an object that the system accepted or, if there are very many, a few successive
// ones. Times are in seconds since the trial's epoch; NaN: unknown.
type accepted struct {
	at, took float64 // time of the last acceptance; seconds from the start of that object's last put
	settled  float64 // seconds from the start of the put to full redundancy
	stored           // totals of these objects and, once sorted, of all before them
}

// mostAccepted limits the entries of objects.all: with more objects, each entry covers several,
// so that a report takes no more than 50 MB for any number.
const mostAccepted = 1 << 20

// objects summarizes the fate of a trial's objects.
type objects struct {
	all    []accepted // in order of acceptance
	states map[record.JobState]int64

	touched, attempts, adopted int64
	sent                       int64           // bytes stored by puts that are known to have succeeded
	verified, unverified       int64           // objects fetched at the end
	missing                    int64           // times that an accepted object was found missing later
	accept, settle             *record.Summary // times of puts that are known to have succeeded
	waiting                    []time.Duration // when puts of accepted objects began that are not durable
	resumed                    bool

	// Bytes of objects at full redundancy, and the times of the last of these, of the last
	// acceptance and of the last record.
	full, fullAt, lastAt, latest float64
	putCounts
}

// putCounts counts the attempts of all sessions of a trial.
type putCounts struct {
	finished int64         // attempts that ended by themselves
	failures int64         // of these, failures of the server
	first    time.Duration // start of the first attempt; negative: none
}

var noPuts = putCounts{first: -1}

// read counts the puts among ops, and returns the last fetch of each object.
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

// ended counts an operation if it is a put.
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

// begun notes the start of an attempt. Both sources are needed: jobs have only an object's
// latest attempt, and operations of a killed session's last second are not recorded.
func (p *putCounts) begun(at time.Duration) {
	if p.first < 0 || at < p.first {
		p.first = at
	}
}

// stored holds the totals of objects accepted up to a moment.
type stored struct {
	objects        int64
	bytes, rounded float64 // file bytes; the same rounded up to whole sectors
}

func (s stored) plus(other stored) stored {
	return stored{s.objects + other.objects, s.bytes + other.bytes, s.rounded + other.rounded}
}

func (s stored) less(other stored) stored {
	return stored{s.objects - other.objects, s.bytes - other.bytes, s.rounded - other.rounded}
}

// fetch is the result of an object's fetch at the end.
type fetch struct {
	at time.Duration
	ok bool
}

// readObjects reads a trial's jobs, operations and events. latest is the time of the last
// record known so far; rounded returns the bytes that one copy of an object of a given size
// takes in whole sectors.
func readObjects(in *scenario.Measured, latest float64, rounded func(int64) int64) *objects {
	s := &objects{states: map[record.JobState]int64{}, latest: latest, putCounts: noPuts, accept: record.NewSummary(),
		settle: record.NewSummary()}
	fetched := s.read(in.Ops)
	for j := range in.Jobs {
		s.job(&j, rounded)
		got, was := fetched[int(j.Object)]
		switch {
		case !was || got.at < j.Accepted: // not fetched, or put again since
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
	if in.LoadDetail(scenario.LoadSettles) > 0 {
		for _, from := range s.waiting { // watched until the last record
			add(s.settle, record.InFlight, from, max(from, time.Duration(s.latest*1e9)))
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

// add appends an entry. At mostAccepted entries, it merges each two successive ones.
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

// upTo returns the totals of the first n entries.
func (s *objects) upTo(n int) stored {
	if n == 0 {
		return stored{}
	}
	return s.all[n-1].stored
}

// by returns the totals of the objects accepted by a moment.
func (s *objects) by(at float64) stored {
	return s.upTo(sort.Search(len(s.all), func(i int) bool { return s.all[i].at > at }))
}

// accepted returns the totals of all accepted objects.
func (s *objects) accepted() stored { return s.upTo(len(s.all)) }

// job adds an object.
func (s *objects) job(j *record.Job, rounded func(int64) int64) {
	began, at, full := j.Began.Seconds(), j.Accepted.Seconds(), j.Durable.Seconds()
	s.states[j.State]++
	s.latest = max(s.latest, began, at, full)
	if j.State == record.JobMissing {
		return // to be put again
	}
	if j.Attempts > 0 {
		s.touched++
		s.attempts += int64(j.Attempts)
		s.begun(j.Began)
	}
	if !isStored(j.State) {
		return
	}
	x := accepted{at, nan, nan, stored{1, float64(j.Size), float64(rounded(j.Size))}}
	if j.Adopted { // its times are those when it was found
		s.adopted++
	} else {
		x.took = at - began
		s.sent += j.Size
		add(s.accept, record.OK, j.Began, j.Accepted)
	}
	switch {
	case j.Adopted:
	case j.State == record.JobDurable:
		x.settled = full - began
		add(s.settle, record.OK, j.Began, j.Durable)
		s.full, s.fullAt = s.full+float64(j.Size), max(s.fullAt, full)
	case j.State == record.JobAccepted:
		s.waiting = append(s.waiting, j.Began)
	}
	s.add(x)
}

// add adds a time to a summary.
func add(s *record.Summary, o record.Outcome, from, to time.Duration) {
	// never fails
	_ = s.Ops([]record.Op{{Outcome: o, Start: scenario.Nanos(from), Intended: scenario.Nanos(from),
		LastByte: scenario.Nanos(to)}})
}

// began returns the start of the first put.
func (s *objects) began() float64 { return max(0, s.first.Seconds()) }

// carried returns a lower bound of the rate, in file bytes per second, at which the link
// carried objects, or NaN. A system that reports durability may accept objects into a buffer on
// this side of the link, so that only durable ones count. It also continues between sessions,
// while the trial's clock may stand still.
func (s *objects) carried(in *scenario.Measured) float64 {
	if math.IsNaN(in.Detail(record.DetailLoad, scenario.LoadObjects)) {
		return math.NaN() // an unfinished or old trial has not recorded whether its system buffers
	}
	bytes, at := float64(s.sent), s.lastAt
	if in.LoadDetail(scenario.LoadSettles) > 0 {
		if s.resumed {
			return math.NaN()
		}
		bytes, at = s.full, s.fullAt
	}
	if d := in.Cell.Data; d.Copies > 1 || d.Directory != "" {
		return math.NaN() // content that the system already has need not be sent
	}
	return bytes / (at - s.began())
}

// measure puts the metrics of objects, and of the load generator.
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
	if in.LoadDetail(scenario.LoadSettles) > 0 || s.states[record.JobDurable] > 0 { // recorded at the trial's end
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
	for name, of := range map[string]*record.Summary{"accept_": s.accept, "durable_": s.settle} {
		put(name+"p50", of.KaplanMeier(record.Duration, 0.5))
		if c := of.Counts(); c.Ops >= stats.PercentileN(0.95) {
			put(name+"p95", of.KaplanMeier(record.Duration, 0.95))
		}
	}
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
