package agent

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Options say how a host is reached.
type Options struct {
	Name        string
	On          string     // name of its machine, if that is another: the agent's --name
	Addr        netip.Addr // under which other hosts reach it
	Credentials Credentials
	// Dial reaches the agent.
	Dial func(ctx context.Context) (net.Conn, error)

	Bed     *testbed.Testbed // has the names and logs of its processes; nil: none is started
	Machine testbed.Machine  // that it runs on; nil: one that the agent is asked about
	Alive   time.Duration    // how often it hears of us; 0: often enough for DefaultOrphaned
}

// Host is a host behind an agent.
type Host struct {
	client
	opt   Options
	close context.CancelFunc
	of    *Host // the first of its machine, if it is another
	cpus  atomic.Int64

	mu    sync.Mutex
	procs []testbed.Process // all that were started
	logs  map[string]*logCopy
}

var _ testbed.Remote = (*Host)(nil)

// Reach connects to an agent, and ends what was started through it before: a machine that was lost may be
// back with all that it did. The caller must Close the host, which ends nothing on it.
func Reach(ctx context.Context, opt Options) (*Host, error) {
	config, err := opt.Credentials.config()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig: config, Protocols: new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return opt.Dial(ctx) },
		HTTP2:       &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	transport.Protocols.SetHTTP2(true)
	h := &Host{
		client: client{
			&http.Client{Transport: transport}, opt.Name, cmp.Or(opt.On, opt.Name), new(atomic.Pointer[error]),
		},
		opt: opt, logs: map[string]*logCopy{},
	}
	if _, err := ask[none](ctx, &h.client, "/begin", none{}); err != nil {
		transport.CloseIdleConnections()
		return nil, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	h.close = func() {
		end()
		transport.CloseIdleConnections()
	}
	if h.opt.Alive <= 0 {
		h.opt.Alive = DefaultOrphaned / 10
	}
	go h.stayAlive(life)
	return h, nil
}

// Beside is another host on the same machine, behind the same agent.
func (h *Host) Beside(name string) *Host {
	opt := h.opt
	opt.Name = name
	return &Host{
		client: client{h.http, name, h.on, h.lost}, opt: opt, close: func() {}, of: h, logs: map[string]*logCopy{},
	}
}

// lostAfter so many unanswered calls in a row an agent is lost.
const lostAfter = 3

func (h *Host) stayAlive(ctx context.Context) {
	tick := time.NewTicker(h.opt.Alive)
	defer tick.Stop()
	for failed := 0; failed < lostAfter; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		call, cancel := context.WithTimeout(ctx, max(h.opt.Alive, time.Second))
		_, err := ask[none](call, &h.client, "/alive", none{})
		cancel()
		if failed++; err == nil {
			failed = 0
		} else if failed == lostAfter {
			h.lost.Store(&err)
		}
	}
}

// Lost implements testbed.Remote.
func (h *Host) Lost() error {
	if why := h.lost.Load(); why != nil {
		return *why
	}
	return nil
}

// Close lets the agent go, which then ends by itself unless it is stopped.
func (h *Host) Close() { h.close() }

// Name implements testbed.Host.
func (h *Host) Name() string { return h.opt.Name }

// Addr implements testbed.Host.
func (h *Host) Addr() netip.Addr { return h.opt.Addr }

// Port implements testbed.Host.
func (h *Host) Port(ctx context.Context, want int) (int, error) {
	return ask[int](ctx, &h.client, "/port", want)
}

// Traffic implements testbed.Host.
func (h *Host) Traffic() (rx, tx float64) {
	t, err := ask[traffic](context.Background(), &h.client, "/traffic", none{})
	if err != nil {
		return math.NaN(), math.NaN()
	}
	return t.Rx, t.Tx
}

// Respond implements testbed.Host.
func (h *Host) Respond(ctx context.Context) (at netip.AddrPort, stop func(), err error) {
	var s string
	o, err := h.open(ctx, "/respond", none{}, &s, nil)
	if err != nil {
		return at, nil, err
	}
	if at, err = netip.ParseAddrPort(s); err != nil {
		o.end()
		return at, nil, err
	}
	return at, o.end, nil
}

// measureLimit is how long a measurement of a slow, long or lossy link may take.
const measureLimit = 10 * time.Minute

// Measure implements testbed.Host.
func (h *Host) Measure(ctx context.Context, to netip.AddrPort, want link.Want, tol float64) (record.LinkCheck, error) {
	ctx, cancel := context.WithTimeout(ctx, measureLimit)
	defer cancel()
	return ask[record.LinkCheck](ctx, &h.client, "/measure", measureCall{to.String(), want, tol})
}

// Mesh implements testbed.Remote.
func (h *Host) Mesh(ctx context.Context, q testbed.MeshCall) (testbed.MeshAnswer, error) {
	return ask[testbed.MeshAnswer](ctx, &h.client, "/mesh", q)
}

// Machine implements testbed.Host.
func (h *Host) Machine() testbed.Machine {
	if h.opt.Machine != nil {
		return h.opt.Machine
	}
	if h.of != nil {
		return h.of.Machine()
	}
	return machine{h}
}

// Processes implements testbed.Host.
func (h *Host) Processes() []testbed.Process {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.procs)
}

// Start implements testbed.Host.
func (h *Host) Start(ctx context.Context, c testbed.Command) (testbed.Process, error) {
	p, err := h.start(ctx, c)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.procs = append(h.procs, p)
	h.mu.Unlock()
	go p.follow()
	if err := testbed.AwaitReady(ctx, p, c); err != nil {
		return nil, fmt.Errorf("testbed: start %s: %w", c.Name, err)
	}
	return p, nil
}

// start asks the agent. What the process reads and writes is carried until it has ended.
func (h *Host) start(ctx context.Context, c testbed.Command) (_ *process, err error) {
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	q := startCall{c, c.Stdin != nil, c.Stdout != nil}
	q.Command.Stdin, q.Command.Stdout, q.Command.Ready = nil, nil, nil
	q.Command.Name = h.opt.Bed.Label(h.opt.Name, c.Name)
	var body io.Reader
	if q.Stdin {
		body = c.Stdin
	}
	var s started
	o, err := h.open(ctx, "/start", q, &s, body)
	if err != nil {
		return nil, err
	}
	p := &process{host: h, started: s, role: c.Role, done: make(chan struct{})}
	p.log = filepath.Join(h.opt.Bed.Logs(), filepath.Base(s.Log))
	if !q.Stdin && !q.Stdout {
		o.end()
		return p, nil
	}
	p.carry(c, o)
	return p, nil
}
