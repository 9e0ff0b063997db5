package web

import (
	"net/http"
	"sync"
)

// pool keeps connections, as its transport does, until it is to redial.
// Closing idle connections is not enough for that: one that another request
// gives back a moment later, or an HTTP/2 connection whose last stream is not
// cleared away yet, would serve the next request. So that request gets a
// transport that has no connections.
type pool struct {
	mu        sync.Mutex
	transport *http.Transport
	armed     int // requests that are to dial
}

// RoundTrip implements http.RoundTripper.
func (p *pool) RoundTrip(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	if p.armed > 0 {
		p.armed--
		p.transport.CloseIdleConnections()
		p.transport = p.transport.Clone()
	}
	tr := p.transport
	p.mu.Unlock()
	return tr.RoundTrip(req)
}

func (p *pool) redial() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed++
	p.transport.CloseIdleConnections()
}

func (p *pool) clone() *http.Transport {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.transport.Clone()
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (p *pool) CloseIdleConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.transport.CloseIdleConnections()
}
