package httpload

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/plimsoll-project/plimsoll/workload"
)

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
