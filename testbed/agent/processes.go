package agent

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// Start starts a process. If it has input, the caller streams it; if it has output, it is streamed after the
// answer.
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
	if input { // it comes with this request
		<-p.Done()
	}
}

// served is a process with methods for the callers of this agent.
type served struct{ testbed.Process }

// Ended waits until the process has ended and returns how.
func (p served) Ended(ctx context.Context) error {
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill stops the process with SIGKILL.
func (p served) Kill(ctx context.Context) error {
	ctx, hurry := context.WithCancel(ctx)
	hurry()
	return p.Stop(ctx)
}

// Log streams the log of the process until it has ended.
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
			over = true // its last output remains to be read
		case <-ctx.Done():
			return
		case <-time.After(logPace):
		}
	}
}

// logPace is the interval at which a log is checked for more.
const logPace = 200 * time.Millisecond
