package sftp

import (
	"context"
	"sync"

	"github.com/plimsoll-project/plimsoll/system/internal/sshd"
)

// pool keeps sessions between operations. Each operation has its own session, so that an aborted
// operation does not affect others.
type pool struct {
	open  func(ctx context.Context) (*sshd.Session, error)
	ctx   context.Context         // ends when the pool is closed
	close context.CancelCauseFunc // ends all sessions for good, including those in use

	mu    sync.Mutex
	idle  []*sshd.Session
	armed int // number of operations that must open a new connection
}

func newPool(open func(ctx context.Context) (*sshd.Session, error)) *pool {
	p := &pool{open: open}
	p.ctx, p.close = context.WithCancelCause(context.Background())
	return p
}

// take returns an idle session or opens a new one.
func (p *pool) take(ctx context.Context) (*sshd.Session, error) {
	if err := p.why(); err != nil {
		return nil, err
	}
	if s := p.reuse(); s != nil {
		return s, nil
	}
	s, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(p.ctx, s.Abort)
	context.AfterFunc(s.Life, func() { stop() })
	return s, nil
}

// reuse returns an idle session, or nil if a new one must be opened.
func (p *pool) reuse() *sshd.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.armed > 0 {
		p.armed--
		return nil
	}
	for len(p.idle) > 0 {
		s := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if s.Alive() {
			return s
		}
	}
	return nil
}

// give returns a session to the pool.
func (p *pool) give(s *sshd.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Alive() {
		p.idle = append(p.idle, s)
	}
}

// redial makes one operation per call open a new connection, even if others are running. It closes
// the idle sessions.
func (p *pool) redial() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed++
	for _, s := range p.idle {
		s.Abort()
	}
	p.idle = nil
}

// why returns the reason why the pool was closed, or nil.
func (p *pool) why() error { return context.Cause(p.ctx) }
