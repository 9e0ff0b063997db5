package agent

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// Start starts a process. What follows from the caller is its input, if it has one; what follows the answer is
// its output, likewise.
func (s *server) Start(ctx context.Context, x *exchange, c testbed.Command, input, output bool) {
	var out *io.PipeReader
	if input {
		c.Stdin = io.NopCloser(x.in)
	}
	if output {
		out, c.Stdout = io.Pipe()
	}
	p, err := s.host.Start(ctx, c)
	if err != nil {
		x.answer(err)
		return
	}
	s.mu.Lock()
	s.processes[p.ID()] = p
	s.mu.Unlock()
	if !x.answer(nil, p.ID(), p.Name(), p.LogPath()) {
		return
	}
	if output {
		_, err := io.Copy(x, out)
		_ = out.CloseWithError(err)
	}
	if input { // which comes with this request
		<-p.Done()
	}
}

// served is a process with what is asked about it from elsewhere.
type served struct{ testbed.Process }

// Ended is how it has ended, once it has.
func (p served) Ended(ctx context.Context) error {
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill stops it without asking it to end.
func (p served) Kill(ctx context.Context) error {
	ctx, hurry := context.WithCancel(ctx)
	hurry()
	return p.Stop(ctx)
}

// Log streams its log until it has ended.
func (p served) Log(ctx context.Context, x *exchange, from int64) {
	f, err := os.Open(p.LogPath())
	if err == nil {
		defer f.Close()
		_, err = f.Seek(from, io.SeekStart)
	}
	if !x.answer(err) {
		return
	}
	for over := false; ; {
		if _, err := io.Copy(x, f); err != nil || over {
			return
		}
		select {
		case <-p.Done():
			over = true // what it wrote last is yet to be read
		case <-ctx.Done():
			return
		case <-time.After(logPace):
		}
	}
}

// logPace is how often a log is looked at for more.
const logPace = 200 * time.Millisecond
