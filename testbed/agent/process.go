package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/testbed"
)

// process is a process behind an agent.
type process struct {
	host   *Host
	id     testbed.ProcessID
	name   string
	there  string   // its log on the agent's machine
	log    string   // its log on our machine
	before *process // an earlier process with the same log; nil: none
	logged int64    // bytes of the log that are here
	done   chan struct{}
	err    error // valid when done is closed

	io sync.WaitGroup // streams its input and output
}

// carry streams the input and output of a process; the request ends with it.
func (p *process) carry(c testbed.Command, o *opened) {
	p.io.Go(func() {
		defer o.end()
		if c.Stdout != nil {
			_, _ = io.Copy(c.Stdout, o)
			_ = c.Stdout.Close()
		}
		_, _ = io.Copy(io.Discard, o)
		if c.Stdin != nil {
			_ = c.Stdin.Close()
		}
	})
}

// follow copies the log until the process has ended, and asks how it ended.
func (p *process) follow() {
	defer close(p.done)
	err := p.fetchLog(context.Background())
	ctx, cancel := context.WithTimeout(context.Background(), lifetime) // without its log the process may still run
	defer cancel()
	end := p.host.call(ctx, "/process/Ended", p.id)
	if said := (*remoteError)(nil); errors.As(end, &said) { // the log has another name here
		said.Text = strings.ReplaceAll(said.Text, p.there, p.log)
	} else if end != nil {
		end = fmt.Errorf("testbed: %s is out of reach: %w", p.name, errors.Join(end, err))
	} else if err != nil {
		end = fmt.Errorf("testbed: the log of %s is incomplete here: %w", p.name, err)
	}
	p.io.Wait()
	p.err = end
}

// fetchLog copies the log from where that of the previous process ended.
func (p *process) fetchLog(ctx context.Context) error {
	if p.before != nil {
		<-p.before.done
		p.logged = p.before.logged
	}
	f, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	o, err := p.host.open(ctx, "/process/Log", nil, []any{p.id, p.logged})
	if err != nil {
		return err
	}
	defer o.end()
	n, err := io.Copy(f, o)
	p.logged += n
	return err
}

func (p *process) Name() string          { return p.name }
func (p *process) Host() testbed.Host    { return p.host }
func (p *process) ID() testbed.ProcessID { return p.id }
func (p *process) LogPath() string       { return p.log }
func (p *process) Done() <-chan struct{} { return p.done }

// Err implements testbed.Process.
func (p *process) Err() error {
	if testbed.Ended(p) {
		return p.err
	}
	return nil
}

// Signal implements testbed.Process.
func (p *process) Signal(s syscall.Signal) error {
	return p.host.call(context.Background(), "/process/Signal", p.id, s)
}

// stopLimit limits a stop without a deadline: no command takes longer.
const stopLimit = 10 * time.Minute

// Stop implements testbed.Process. If the agent has ended or does not answer, there is nothing left to stop:
// its processes end with it.
func (p *process) Stop(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	err := p.host.call(bounded, "/process/Stop", p.id)
	var said *remoteError
	if err != nil && !errors.As(err, &said) {
		err = p.host.call(context.WithoutCancel(ctx), "/process/Kill", p.id)
		if err != nil && !errors.As(err, &said) {
			p.host.lost.CompareAndSwap(nil, &err)
		}
	}
	if err != nil && p.host.Lost() == nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done // the rest of its log arrives soon
	return nil
}

// Memory implements testbed.Process.
func (p *process) Memory() testbed.Memory {
	nan := math.NaN()
	return askOr(p.host, testbed.Memory{RSS: nan, Peak: nan}, "/process/Memory", p.id)
}

// ResetPeak implements testbed.Process.
func (p *process) ResetPeak() error {
	return p.host.call(context.Background(), "/process/ResetPeak", p.id)
}

// Peak implements testbed.Process.
func (p *process) Peak() float64 {
	return askOr(p.host, math.NaN(), "/process/Peak", p.id)
}

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
	if x.answer(err) {
		_, _ = io.Copy(x, testbed.Follow(ctx, f, func() bool { return testbed.Ended(p) }))
	}
}
