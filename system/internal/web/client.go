// Package web is the HTTP client that systems share for unmeasured requests, such as seeding,
// probes and reading an object back. Package httpload makes the measurements.
package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/redirect"
	"github.com/plimsoll-project/plimsoll/internal/trust"
	"github.com/plimsoll-project/plimsoll/system"
)

// Timeouts for servers that do not answer. The body has no timeout of its own, because its size and
// ctx are up to the caller.
const (
	dialTimeout = 10 * time.Second
	headTimeout = 60 * time.Second
)

// Dial makes connections, like the method of testbed.Host.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// kept is how long an unused connection is kept: longer than any pause between two operations of a
// trial.
const kept = 2 * time.Minute

// Client talks to one server. name is the name of the system and the prefix of every error.
type Client struct {
	name string
	http *http.Client
	pool *pool
}

// New returns a client that connects with dial and trusts the certificates that t names.
func New(name string, dial Dial, t system.HTTPTarget) (*Client, error) {
	conf, err := trust.Config(t.CAFile, t.Insecure)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return newClient(name, transport(dial, conf)), nil
}

func transport(dial Dial, conf *tls.Config) *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			return resolveAndDial(ctx, dial, network, address)
		},
		TLSClientConfig:       conf, // no session cache, so every handshake is a full one
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: headTimeout,
		DisableCompression:    true, // otherwise the sizes on the wire would differ from the object's
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   64, // one for each operation that may run concurrently
		IdleConnTimeout:       kept,
		WriteBufferSize:       64 << 10,
	}
}

func newClient(name string, tr *http.Transport) *Client {
	p := &pool{transport: tr}
	return &Client{name: name, pool: p, http: &http.Client{
		Transport: p,
		// redirect.Do follows, and keeps the user's headers from other hosts.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// resolveAndDial resolves names, because the host's dial accepts only IP addresses.
func resolveAndDial(ctx context.Context, dial Dial, network, address string) (net.Conn, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return dial(ctx, network, address)
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	for _, a := range addrs {
		c, failed := dial(ctx, network, net.JoinHostPort(a.Unmap().String(), port))
		if failed == nil {
			return c, nil
		}
		err = errors.Join(err, failed)
	}
	return nil, err
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Redial makes the next request dial a new connection. Each call affects one request, even if
// others are in progress.
func (c *Client) Redial() { c.pool.redial() }

// HTTP returns the underlying client, for protocols on top of HTTP.
func (c *Client) HTTP() *http.Client { return c.http }

// Get writes the whole object to w.
func (c *Client) Get(ctx context.Context, t system.HTTPTarget, w io.Writer) error {
	resp, err := c.ask(ctx, http.MethodGet, t, "", http.StatusOK)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = c.Copy(resp, w)
	return err
}

// GetRange writes the n bytes at off to w, as system.Ranger specifies.
func (c *Client) GetRange(ctx context.Context, t system.HTTPTarget, off, n int64, w io.Writer) error {
	if n == 0 {
		return nil
	}
	resp, err := c.ask(ctx, http.MethodGet, t, fmt.Sprintf("bytes=%d-%d", off, off+n-1), rangeStatuses...)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	where := fmt.Sprintf("%s: bytes %d-%d of %s", c.name, off, off+n-1, public(resp.Request.URL))
	switch resp.StatusCode {
	case http.StatusOK:
		return fmt.Errorf("%s: %w (it answered 200)", where, system.ErrNoRange)
	case http.StatusRequestedRangeNotSatisfiable:
		return fmt.Errorf("%s: the object ends before it (416): %w", where, io.ErrUnexpectedEOF)
	}
	first, last, total, ok := contentRange(resp.Header.Get("Content-Range"))
	if !ok || first != off || last > off+n-1 {
		return fmt.Errorf("%s: answered with Content-Range %q", where, resp.Header.Get("Content-Range"))
	}
	if got := last - first + 1; resp.ContentLength >= 0 && resp.ContentLength != got {
		return fmt.Errorf("%s: Content-Length %d contradicts Content-Range %q", where, resp.ContentLength,
			resp.Header.Get("Content-Range"))
	}
	if _, err := c.Copy(resp, w); err != nil {
		return err
	}
	if last < off+n-1 {
		return fmt.Errorf("%s: the object has %d bytes: %w", where, total, io.ErrUnexpectedEOF)
	}
	return nil
}

// Send is [Client.Call] with errors that include the meaning of the status.
func (c *Client) Send(
	ctx context.Context, method string, t system.HTTPTarget, size int64, r io.Reader,
) ([]byte, error) {
	answer, err := c.Call(ctx, Call{Method: method, URL: t.URL, Header: t.Header, Body: r, Size: size})
	return answer, Meaning(Status(err), err)
}

// Size returns what a server says of an object (Size, NoRange and Moved), and the header of its
// answer. It requests a range of one byte instead of using HEAD, because some servers send
// Accept-Ranges but ignore Range.
func (c *Client) Size(ctx context.Context, t system.HTTPTarget) (o system.Object, head http.Header, err error) {
	one, err := c.ask(ctx, http.MethodGet, t, "bytes=0-0", rangeStatuses...)
	if err != nil {
		return o, nil, err
	}
	defer one.Body.Close()
	switch one.StatusCode {
	case http.StatusPartialContent:
		first, last, total, ok := contentRange(one.Header.Get("Content-Range"))
		if !ok || first != 0 || last != 0 {
			return o, nil, fmt.Errorf("%s: bytes 0-0 of %s: answered with Content-Range %q", c.name,
				public(t.URL), one.Header.Get("Content-Range"))
		}
		o.Size = total
	case http.StatusOK:
		o.NoRange, o.Size = true, one.ContentLength
	}
	o.Moved = one.Request.URL.String() != t.URL.String()
	return o, one.Header, nil
}

// Head returns an object's header and its size, or -1 if the header has none.
func (c *Client) Head(ctx context.Context, t system.HTTPTarget) (head http.Header, size int64, err error) {
	resp, err := c.ask(ctx, http.MethodHead, t, "", http.StatusOK)
	if err != nil {
		return nil, -1, err
	}
	resp.Body.Close()
	return resp.Header, resp.ContentLength, nil
}

// Fresh returns a copy of c that makes a connection for each request, for probes of a server's
// health. It need not be closed.
func (c *Client) Fresh() *Client {
	tr := c.pool.clone()
	tr.DisableKeepAlives = true
	return newClient(c.name, tr)
}

// rangeStatuses are those that answer a request for a range. An empty object may be answered with
// the last one.
var rangeStatuses = []int{http.StatusPartialContent, http.StatusOK, http.StatusRequestedRangeNotSatisfiable}

// ask makes a request without a body; rangeHeader may be empty. A status other than those
// in want is a *StatusError with the meaning of the status.
func (c *Client) ask(ctx context.Context, method string, t system.HTTPTarget, rangeHeader string,
	want ...int) (*http.Response, error) {
	resp, err := c.do(ctx, method, t, rangeHeader, 0, nil)
	if err != nil || slices.Contains(want, resp.StatusCode) {
		return resp, err
	}
	defer resp.Body.Close()
	return nil, Meaning(resp.StatusCode, c.refusal(resp))
}

func (c *Client) do(ctx context.Context, method string, t system.HTTPTarget, rangeHeader string, size int64,
	body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, t.URL.String(), body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	if body != nil {
		req.ContentLength = size
		if size == 0 {
			req.Body = http.NoBody
		}
	}
	maps.Copy(req.Header, t.Header)
	if rangeHeader != "" {
		req.Header.Set("Range", rangeHeader)
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
		req.Header.Del("Host")
	}
	req.Header.Set("Accept-Encoding", "identity")
	var resp *http.Response
	if method == http.MethodGet || method == http.MethodHead {
		resp, _, err = redirect.Do(req, t.Header, c.http.Do)
	} else {
		resp, err = c.http.Do(req)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, redact(err, t.URL))
	}
	return resp, nil
}

// Copy writes an answer's body to w and checks that it ended properly.
func (c *Client) Copy(resp *http.Response, w io.Writer) (n int64, err error) {
	n, err = io.Copy(w, resp.Body)
	if err == nil {
		if late := resp.Trailer.Get("X-Stream-Error"); late != "" {
			err = errors.New(late) // IPFS servers use it to report errors after the header
		}
	}
	if err != nil {
		// net/http has a separate error for a chunked answer that ends without its last line.
		if !errors.Is(err, io.ErrUnexpectedEOF) && strings.Contains(err.Error(), "unexpected EOF") {
			err = fmt.Errorf("%w: %w", err, io.ErrUnexpectedEOF)
		}
		err = fmt.Errorf("%s: %s %s: after %d bytes: %w", c.name, resp.Request.Method, public(resp.Request.URL), n, err)
	}
	return n, err
}

// Meaning wraps err with the meaning of a status.
func Meaning(status int, err error) error {
	switch status {
	case http.StatusNotFound, http.StatusGone:
		return fmt.Errorf("%w: %w", err, system.ErrNotFound)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: %w", err, system.ErrAuth)
	case http.StatusInsufficientStorage:
		return fmt.Errorf("%w: %w", err, system.ErrQuota)
	}
	return err
}

// public returns the URL as errors show it: without the query, which contains the signature of
// presigned URLs, and without a password.
func public(u *url.URL) string {
	shown := *u
	shown.RawQuery = ""
	return shown.Redacted()
}

// redact replaces the URL in the transport's error by the public one.
func redact(err error, u *url.URL) error {
	if inner := errors.Unwrap(err); inner != nil {
		return fmt.Errorf("%s: %w", public(u), inner)
	}
	return err
}

// contentRange parses "bytes 0-9/100"; total is -1 for "*".
func contentRange(s string) (first, last, total int64, ok bool) {
	var all string
	if n, _ := fmt.Sscanf(s, "bytes %d-%d/%s", &first, &last, &all); n < 3 {
		return 0, 0, 0, false
	}
	total, err := strconv.ParseInt(all, 10, 64)
	if all == "*" {
		total, err = -1, nil
	}
	return first, last, total, err == nil && first >= 0 && last >= first && (total < 0 || last < total)
}

// Reader is the part of a node that reads objects over HTTP. Nodes embed it.
type Reader struct {
	Client *Client
	locate func(ref system.Ref) (system.HTTPTarget, error)
}

// NewReader returns a reader with the client New(name, dial, t). locate returns the location of an
// object.
func NewReader(
	name string, dial Dial, t system.HTTPTarget, locate func(ref system.Ref) (system.HTTPTarget, error),
) (Reader, error) {
	c, err := New(name, dial, t)
	return Reader{c, locate}, err
}

// Get implements system.Node.
func (r Reader) Get(ctx context.Context, ref system.Ref, w io.Writer) error {
	t, err := r.locate(ref)
	if err != nil {
		return err
	}
	return r.Client.Get(ctx, t, w)
}

// GetRange implements system.Ranger.
func (r Reader) GetRange(ctx context.Context, ref system.Ref, off, n int64, w io.Writer) error {
	t, err := r.locate(ref)
	if err != nil {
		return err
	}
	return r.Client.GetRange(ctx, t, off, n, w)
}

// Stat implements system.Stater with HTTP HEAD.
func (r Reader) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	o := system.Object{Name: string(ref), Ref: ref, Size: -1}
	t, err := r.locate(ref)
	if err == nil {
		_, o.Size, err = r.Client.Head(ctx, t)
	}
	return o, err
}

// Redial implements system.Redialer.
func (r Reader) Redial(context.Context) error {
	r.Client.Redial()
	return nil
}

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

// Patient returns a client for uploads that are answered late or early. It waits for the answer's
// header until ctx ends, because some servers answer only after storing. If the server stops
// reading the body, it reads the answer that was already sent, with the reason. It trusts the
// system's root certificates.
func Patient(name string, dialHost Dial) *Client {
	tr := transport(dialHost, &tls.Config{})
	tr.ResponseHeaderTimeout = 0
	dial := tr.DialContext
	tr.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return answerFirst{conn}, nil
	}
	return newClient(name, tr)
}

// answerTime is how long reading an answer that has already arrived may take.
const answerTime = 250 * time.Millisecond

// answerFirst delays the error when the peer stops reading, because net/http drops the answer if it
// sees the failed write first.
type answerFirst struct{ net.Conn }

func (c answerFirst) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		time.Sleep(answerTime)
	}
	return n, err
}
