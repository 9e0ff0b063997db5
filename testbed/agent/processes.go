package agent

import (
	"context"
	"fmt"
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

// Ended waits until a process has ended and returns how.
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

// Kill stops a process with SIGKILL.
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

// Log streams the log of a process until it has ended.
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
			over = true // its last output remains to be read
		case <-ctx.Done():
			return
		case <-time.After(logPace):
		}
	}
}

// logPace is the interval at which a log is checked for more.
const logPace = 200 * time.Millisecond
