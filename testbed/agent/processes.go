package agent

import (
	"context"
	"fmt"
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

// Ended is how a process has ended, once it has.
func (s *server) Ended(ctx context.Context, id testbed.ProcessID) error {
	p, err := s.process(id)
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
		return p.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Kill stops a process without asking it to end.
func (s *server) Kill(ctx context.Context, id testbed.ProcessID) error {
	ctx, hurry := context.WithCancel(ctx)
	hurry()
	p, err := s.process(id)
	if err == nil {
		err = p.Stop(ctx)
	}
	return err
}

func (s *server) process(id testbed.ProcessID) (testbed.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.processes[id]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("agent: process %v: %w", id, os.ErrProcessDone)
}

// Log streams the process's log until it has ended.
func (s *server) Log(ctx context.Context, x *exchange, id testbed.ProcessID, from int64) {
	p, err := s.process(id)
	var f *os.File
	if err == nil {
		f, err = os.Open(p.LogPath())
	}
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
