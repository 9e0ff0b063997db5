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

// frame is an element of the output stream of a load process, encoded with gob. One of the
// fields is set. After a result only times follow, and after an error nothing.
type frame struct {
	Block    []byte // operations, encoded by record.AppendBlock
	Progress *Progress
	Ready    bool  // ready to start
	Time     int64 // nanoseconds of its wall clock since 1970
	Result   *Result
	Error    string
}

// Serve is `plimsoll node load`: it reads a Spec (JSON) from stdin, reports that it is ready,
// executes it at the time that it reads next, and writes frames for [Drive] to stdout. stdin
// stays open as long as the parent lives; when it or ctx ends, operations in flight are
// recorded as cancelled and the result follows.
func Serve(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	return serveAhead(ctx, stdin, stdout, 0)
}

// serveAhead is Serve with a wall clock that is ahead, for tests.
func serveAhead(ctx context.Context, stdin io.Reader, stdout io.Writer, ahead time.Duration) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	encoder := gob.NewEncoder(stdout) // safe for concurrent use
	write := func(f frame) error { return encoder.Encode(f) }
	defer func() {
		if err != nil {
			// The parent reads the error from the stream; if it cannot be written, our
			// exit status shows it.
			err = errors.Join(err, write(frame{Error: err.Error()}))
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
				write(frame{Time: time.Now().Add(ahead).UnixNano()})
			case m.Start != 0:
				start <- time.Unix(0, m.Start).Add(-ahead)
			default: // messages may overtake each other, so keep the largest
				link.others.Store(max(link.others.Load(), m.Others))
			}
		}
	}()
	s.Epoch = s.Epoch.Add(-ahead)
	// Event loops are in system calls most of the time. With spare Go processors they
	// never wait for one; the number of real CPUs does not matter here.
	runtime.GOMAXPROCS(max(runtime.NumCPU(), maxThreads) + 2)
	var block []byte
	sink := func(ops []record.Op) error {
		block = record.AppendBlock(block[:0], ops)
		return write(frame{Block: block})
	}
	res, err := run(ctx, s, sink, link, func(p Progress) { write(frame{Progress: &p}) }, func() time.Time {
		write(frame{Ready: true})
		select {
		case at := <-start:
			return at
		case <-ctx.Done():
			return time.Time{}
		}
	})
	if err == nil {
		err = write(frame{Result: &res})
	}
	if err == nil {
		<-ctx.Done() // there may be more time requests
	}
	return err
}
