package web

import (
	"net/http"
	"sync"
)

// pool keeps connections, like its transport, until redial. Closing idle connections does not
// suffice for that: a connection that another request returns a moment later, or an HTTP/2
// connection whose last stream is not yet cleaned up, would serve the next request. That request
// therefore gets a transport without connections.
type pool struct {
	mu        sync.Mutex
	transport *http.Transport
	armed     int // requests that have to dial
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

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (p *pool) CloseIdleConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.transport.CloseIdleConnections()
}
