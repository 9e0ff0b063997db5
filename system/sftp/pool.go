package sftp

import (
	"context"
	"github.com/plimsoll-project/plimsoll/system/internal/sshd"
	"sync"
)

// pool keeps sessions between operations. Each operation has its own session, so that an aborted
// operation does not affect others.
type pool struct {
	open func(ctx context.Context) (*sshd.Session, error)

	mu     sync.Mutex
	idle   []*sshd.Session
	used   map[*sshd.Session]bool
	armed  int // number of operations that must open a new connection
	closed error
}

// take returns an idle session or opens a new one.
func (p *pool) take(ctx context.Context) (*sshd.Session, error) {
	p.mu.Lock()
	if p.closed != nil {
		p.mu.Unlock()
		return nil, p.closed
	}
	if p.armed > 0 {
		p.armed--
	} else {
		for len(p.idle) > 0 {
			s := p.idle[len(p.idle)-1]
			p.idle = p.idle[:len(p.idle)-1]
			if s.Alive() {
				p.used[s] = true
				p.mu.Unlock()
				return s, nil
			}
		}
	}
	p.mu.Unlock()
	s, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		s.Abort()
		return nil, p.closed
	}
	p.used[s] = true
	return s, nil
}

// give returns a session to the pool.
func (p *pool) give(s *sshd.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, s)
	if p.closed == nil && s.Alive() {
		p.idle = append(p.idle, s)
	}
}

// redial makes one operation per call open a new connection, even if others are running.
func (p *pool) redial() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed++
	p.drop()
}

// drop closes the idle sessions; the caller holds the lock.
func (p *pool) drop() {
	for _, s := range p.idle {
		s.Abort()
	}
	p.idle = nil
}

// close ends all sessions for good, including those in use.
func (p *pool) close(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed == nil {
		p.closed = why
	}
	p.drop()
	for s := range p.used {
		s.Abort()
	}
}

// why returns the reason why the pool was closed, or nil.
func (p *pool) why() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}
