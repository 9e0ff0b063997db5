package httpload

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/workload"
)

// schedule decides whether there is a k-th operation and what it requests. All connections
// share it; operation k depends only on the seed and k, not on the connection.
type schedule struct {
	seed      uint64
	order     string
	rangeSize int64
	objects   []Object
	pieces    []int64       // running sum of the full ranges of each object
	popular   workload.Zipf // nil: all objects are equally popular
	maxOps    int64
	maxBytes  int64
	atLeast   int64 // operations allowed whatever their bytes
	shard     int64 // index among shards; see owner
	shards    int64

	mu       sync.Mutex
	next     int64 // k of the next operation
	claimed  int64 // requested bytes
	arrivals workload.Arrivals
	replay   *replay // arrivals, if a log is replayed
	due      int64   // ns since release: intended start of the next operation
	length   int64   // total duration of steps, ns
	ended    bool    // the arrivals have ended
	done     bool
}

// request is the request of one operation.
type request struct {
	object   int
	off      int64
	length   int64 // bytes; -1: unknown (whole object)
	whole    bool
	intended int64  // ns since release; open loop only
	warm     bool   // warm-up, before the clock starts
	head     bool   // HEAD, without a body
	logged   int64  // bytes that were sent according to the replayed log
	uri      string // path and query; empty: those of the object
}

func newSchedule(s *Spec) *schedule {
	sc := &schedule{seed: s.Seed, order: s.Order, rangeSize: s.Range, objects: s.Objects, maxOps: s.Requests,
		maxBytes: s.Bytes,
		shard:    int64(s.Shard), shards: int64(max(1, s.Shards))}
	if s.Range > 0 {
		var sum int64
		for i := range s.Objects {
			sum += s.Objects[i].Span() / s.Range
			sc.pieces = append(sc.pieces, sum)
		}
	}
	if s.Zipf > 0 {
		sc.popular = workload.NewZipf(len(s.Objects), s.Zipf)
	}
	if s.Arrivals == nil {
		sc.atLeast = int64(s.Concurrency) * sc.shards // one for each connection
		return sc
	}
	sc.arrivals = s.Arrivals.Arrivals(s.Seed)
	if s.Arrivals.Process == "log" {
		sc.replay = newReplay(s)
		sc.arrivals = sc.replay
	}
	for _, st := range s.Arrivals.Steps {
		sc.length += int64(st.For)
	}
	sc.advance(0)
	return sc
}

// at returns the request of operation k. It is a pure function.
func (sc *schedule) at(k int64) request {
	n := int64(len(sc.objects))
	pick := func(salt uint64, n int64) int64 { return int64(workload.Mix(sc.seed^salt, uint64(k)) % uint64(n)) }
	object := pick(1, n)
	if sc.popular != nil {
		object = int64(sc.popular.Pick(workload.Uniform(sc.seed^1, uint64(k))))
	}
	r := request{object: int(object), length: sc.rangeSize}
	switch {
	case sc.rangeSize == 0:
		if sc.order == orderSequential {
			r.object = int(k % n)
		}
		r.length, r.whole = sc.objects[r.object].Size, true
		return r
	case sc.order == orderSequential:
		// All full ranges of the first object, then of the second, and so on, repeatedly.
		p := k % sc.pieces[n-1]
		r.object, _ = slices.BinarySearch(sc.pieces, p+1)
		if r.object > 0 {
			p -= sc.pieces[r.object-1]
		}
		r.off = p * sc.rangeSize
	case sc.order == orderAligned:
		r.off = pick(2, sc.objects[r.object].Span()/sc.rangeSize) * sc.rangeSize
	default:
		r.off = pick(2, sc.objects[r.object].Span()-sc.rangeSize+1)
	}
	return r
}

// warmup returns the warm-up request of a connection: the first bytes of a request that is far
// from the first ones of the trial.
func (sc *schedule) warmup(worker int, bytes int64) request {
	r := sc.at(1<<40 + int64(worker))
	r.warm = true
	if r.length > bytes && sc.objects[r.object].Undivided == "" {
		r.length, r.whole = bytes, false
	}
	return r
}

func (r *request) kind() record.OpKind {
	switch {
	case r.head:
		return record.OpStat
	case r.whole:
		return record.OpGet
	}
	return record.OpRange
}

func (r *request) method() string {
	if r.head {
		return http.MethodHead
	}
	return http.MethodGet
}

// claim takes our next operation in a closed loop, if the limits allow one.
func (sc *schedule) claim() (request, bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for {
		if r, ours, ok := sc.take(); ours || !ok {
			return r, ok
		}
	}
}

// claimDue takes our next operation in an open loop if it is due. If not, at is when to call
// it again (ns since release); more is false if no operation follows.
func (sc *schedule) claimDue(now int64) (r request, ok bool, at int64, more bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for !sc.done {
		if sc.due > now {
			return r, false, sc.due, true
		}
		r, ours, ok := sc.take()
		if !ok {
			break
		}
		r.intended = sc.due
		sc.advance(sc.due)
		if ours {
			return r, true, 0, true
		}
	}
	return r, false, 0, false
}

// take takes the next operation, ours or that of another shard.
func (sc *schedule) take() (r request, ours, ok bool) {
	if sc.done = sc.done || sc.bounded(); sc.done {
		return request{}, false, false
	}
	if ours = sc.owner(sc.next) == sc.shard; sc.replay != nil {
		r = sc.replay.ahead
	} else {
		r = sc.at(sc.next)
	}
	sc.next++
	sc.claimed += max(r.length, r.logged, 1) // unknown and empty sizes count, so that it ends
	return r, ours, true
}

// bounded reports whether a limit is reached.
func (sc *schedule) bounded() bool {
	return sc.maxOps > 0 && sc.next >= sc.maxOps ||
		sc.maxBytes > 0 && sc.claimed >= sc.maxBytes && sc.next >= sc.atLeast
}

// owner returns the shard of operation k. Each shard gets one of every group of `shards`
// operations. Which one changes from group to group: otherwise, if the numbers of objects and
// shards had a common factor, each shard would get only a few of the objects.
func (sc *schedule) owner(k int64) int64 {
	turn := workload.Mix(sc.seed^7, uint64(k/sc.shards)) % uint64(sc.shards)
	return (k + int64(turn)) % sc.shards
}

func (sc *schedule) advance(from int64) {
	// The next request of a log may be hours later: do not wait for it.
	wait, stop := time.Duration(0), sc.replay != nil && sc.bounded()
	if !stop {
		wait, stop = sc.arrivals.Pace(time.Duration(from), uint64(sc.next))
	}
	if stop {
		sc.done, sc.ended = true, true
	} else {
		sc.due = from + int64(max(wait, 0))
	}
}

// offered returns the rate of the arrivals in operations per second: their number divided by
// the time in which they came, however long the answers took. ran is the duration of the trial
// in nanoseconds.
func (sc *schedule) offered(ran int64) float64 {
	span := cmp.Or(sc.arrivalsEnd(), ran)
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return float64(sc.next) / (float64(span) / 1e9)
}

// arrivalsEnd returns when the arrivals ended (ns since release): at the end of steps or of a
// log or, if a limit was reached, when the next operation would have come. 0: they were cut
// off, or there are none.
func (sc *schedule) arrivalsEnd() int64 {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	switch {
	case sc.arrivals == nil || !sc.done:
		return 0
	case sc.ended:
		return max(sc.length, sc.due)
	}
	return sc.due
}

// replay is an arrival process from the requests of a log, which also determines the requests.
type replay struct {
	file    *os.File
	rest    io.LimitedReader // of the file, which may grow
	log     *workload.RequestLog
	paths   *workload.Paths // nil: paths are requested unchanged
	objects []Object
	speed   float64
	ahead   request // the next request
	err     error   // why it ended; io.EOF: at the end of the log
}

func newReplay(s *Spec) *replay {
	r := &replay{objects: s.Objects, speed: s.Arrivals.Speed}
	if !s.Arrivals.AsIs {
		r.paths = workload.NewPaths()
	}
	if r.file, r.err = os.Open(s.Arrivals.Log); r.err == nil {
		r.rest = io.LimitedReader{R: r.file, N: s.Arrivals.LogSize}
		r.log = workload.NewRequestLog(&r.rest, s.Arrivals.Log)
	}
	return r
}

// Pace implements [workload.Arrivals].
func (r *replay) Pace(elapsed time.Duration, _ uint64) (wait time.Duration, stop bool) {
	var l workload.LoggedRequest
	if r.err == nil {
		l, r.err = r.log.Next()
	}
	if r.err == io.EOF && r.rest.N > 0 {
		r.err = fmt.Errorf("httpload: the log %s has changed: it lacks %d bytes at its end", r.file.Name(), r.rest.N)
	}
	if r.err == nil {
		r.ahead, r.err = r.request(l)
	}
	return time.Duration(float64(l.At)/r.speed) - elapsed, r.err != nil
}

func (r *replay) request(l workload.LoggedRequest) (request, error) {
	req := request{off: l.Offset, length: l.Length, whole: l.Head || l.Length < 0, head: l.Head, logged: l.Bytes}
	if r.paths == nil {
		req.uri = l.Path
	} else if req.object = r.paths.Index(l.Path); req.object >= len(r.objects) ||
		l.Offset+l.Length > r.objects[req.object].Size {
		return req, fmt.Errorf("httpload: the log has changed: no object of this size was stored for %s", l.Path)
	}
	switch {
	case l.Head:
		req.off, req.length, req.logged = 0, 0, 0
	case l.Length < 0:
		req.length = r.objects[req.object].Size
	}
	return req, nil
}

// failed closes the log and returns why it could not be read to its end.
func (sc *schedule) failed() error {
	if sc.replay == nil {
		return nil
	}
	sc.replay.file.Close()
	if sc.replay.err == io.EOF {
		return nil
	}
	return sc.replay.err
}
