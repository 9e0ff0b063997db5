package agent

import (
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// processCall names a process, and what else a call needs.
type processCall struct {
	ID     testbed.ProcessID
	Signal syscall.Signal
	Now    bool  // stop it without asking it to end
	From   int64 // of its log
}

// processCalls are the calls about processes, on the agent's side.
func (s *server) processCalls(mux map[string]handler) {
	mux["/start"], mux["/log"] = stream(s.start), stream(s.log)
	mux["/ended"] = about(s, func(ctx context.Context, p testbed.Process, _ processCall) (ended, error) {
		select {
		case <-p.Done():
			return ended{toRemote(p.Err())}, nil
		case <-ctx.Done():
			return ended{}, ctx.Err()
		}
	})
	mux["/signal"] = about(s, func(_ context.Context, p testbed.Process, q processCall) (none, error) {
		return none{}, p.Signal(q.Signal)
	})
	mux["/stop"] = about(s, func(ctx context.Context, p testbed.Process, q processCall) (none, error) {
		stopping, hurry := context.WithCancel(ctx)
		defer hurry()
		if q.Now {
			hurry()
		}
		return none{}, p.Stop(stopping)
	})
	mux["/memory"] = about(s, func(_ context.Context, p testbed.Process, _ processCall) (testbed.Memory, error) {
		return p.Memory(), nil
	})
	mux["/resetpeak"] = about(s, func(_ context.Context, p testbed.Process, _ processCall) (none, error) {
		return none{}, p.ResetPeak()
	})
	mux["/peak"] = about(s, func(_ context.Context, p testbed.Process, _ processCall) (float64, error) {
		return p.Peak(), nil
	})
}

// about makes a handler of a question about one process.
func about[A any](s *server, do func(context.Context, testbed.Process, processCall) (A, error)) handler {
	return call(func(ctx context.Context, q processCall) (a A, err error) {
		p, err := s.process(q.ID)
		if err != nil {
			return a, err
		}
		return do(ctx, p, q)
	})
}

// startCall is a command, which has no functions and streams. What follows it from the caller is the
// process's input, if Stdin; what follows the agent's answer is its output, if Stdout.
type startCall struct {
	Command       testbed.Command
	Stdin, Stdout bool
}

// started is what the agent says of a process, once.
type started struct {
	ProcessID testbed.ProcessID
	Name, Log string
}

// ended is how it ended.
type ended struct{ Err *remoteError }

func (s *server) start(ctx context.Context, x *exchange, q startCall) {
	c := q.Command
	var out *io.PipeReader
	if q.Stdin {
		c.Stdin = io.NopCloser(x.in)
	}
	if q.Stdout {
		out, c.Stdout = io.Pipe()
	}
	p, err := s.host.Start(ctx, c)
	if err != nil {
		_ = x.answer(started{}, err)
		return
	}
	s.mu.Lock()
	s.processes[p.ID()] = p
	s.mu.Unlock()
	if x.answer(started{p.ID(), p.Name(), p.LogPath()}, nil) != nil {
		return
	}
	if q.Stdout {
		_, err := io.Copy(x, out)
		_ = out.CloseWithError(err)
	}
	if q.Stdin { // which comes with this request
		<-p.Done()
	}
}

func (s *server) process(id testbed.ProcessID) (testbed.Process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.processes[id]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("agent: process %v: %w", id, os.ErrProcessDone)
}

// log streams the process's log until it has ended.
func (s *server) log(ctx context.Context, x *exchange, q processCall) {
	p, err := s.process(q.ID)
	var f *os.File
	if err == nil {
		f, err = os.Open(p.LogPath())
	}
	if err == nil {
		defer f.Close()
		_, err = f.Seek(q.From, io.SeekStart)
	}
	if x.answer(none{}, err) != nil || err != nil {
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
