package httpload

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// frame is an element of the stream that a load process writes, encoded by gob: one of
// these. After a result come answers about the time, after an error nothing.
type frame struct {
	Block    []byte // operations, as record.AppendBlock encodes them
	Progress *Progress
	Ready    bool  // it can start
	Time     int64 // nanoseconds of its wall clock since 1970
	Result   *Result
	Error    string
}

// frameWriter writes frames; it is an OpSink.
type frameWriter struct {
	gob   *gob.Encoder // safe for concurrent use
	block []byte
}

func (f *frameWriter) write(one frame) error { return f.gob.Encode(one) }

// Ops implements [record.OpSink].
func (f *frameWriter) Ops(ops []record.Op) error {
	f.block = record.AppendBlock(f.block[:0], ops)
	return f.write(frame{Block: f.block})
}

// Serve is `plimsoll node load`: it reads a Spec (JSON) from stdin, says when it is ready,
// runs it from the moment that it reads next, and writes frames for [Drive] to stdout. stdin
// stays open as long as the parent lives; when it ends, or ctx does, operations under way
// are recorded as cancelled and the result follows.
func Serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	return serveAhead(ctx, stdin, stdout, 0)
}

// serveAhead is Serve with a wall clock that is ahead by so much.
func serveAhead(ctx context.Context, stdin io.Reader, stdout io.Writer, ahead time.Duration) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &frameWriter{gob: gob.NewEncoder(stdout)}
	defer func() {
		if err != nil {
			// The parent learns it from the stream; what cannot be written there is
			// in our own exit code.
			err = errors.Join(err, out.write(frame{Error: err.Error()}))
		}
	}()
	var s Spec
	d := json.NewDecoder(stdin)
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return fmt.Errorf("httpload: read the specification from stdin: %w", err)
	}
	start, link := make(chan time.Time, 1), &linkUse{}
	go func() {
		defer cancel()
		for {
			var m message
			if d.Decode(&m) != nil {
				return
			}
			switch {
			case m.Time:
				out.write(frame{Time: time.Now().Add(ahead).UnixNano()})
			case m.Start != 0:
				start <- time.Unix(0, m.Start).Add(-ahead)
			default: // only the largest counts: two may have overtaken each other
				link.others.Store(max(link.others.Load(), m.Others))
			}
		}
	}()
	s.Epoch = s.Epoch.Add(-ahead)
	// Event loops sit in system calls most of the time; with a spare processor
	// the Go scheduler never makes one wait for its place. (What there is of
	// real CPUs does not change.)
	runtime.GOMAXPROCS(max(runtime.NumCPU(), maxThreads) + 2)
	res, err := run(ctx, s, out, link, func(p Progress) { out.write(frame{Progress: &p}) }, func() time.Time {
		out.write(frame{Ready: true})
		select {
		case at := <-start:
			return at
		case <-ctx.Done():
			return time.Time{}
		}
	})
	if err == nil {
		err = out.write(frame{Result: &res})
	}
	if err == nil {
		<-ctx.Done() // there may be more questions for the time
	}
	return err
}
