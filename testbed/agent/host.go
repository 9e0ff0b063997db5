package agent

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Options describe how to reach a host.
type Options struct {
	Name        string
	On          string     // name of its machine, as in the agent's --name; empty: Name
	Addr        netip.Addr // address for other hosts
	Credentials Credentials
	// Dial connects to the agent.
	Dial func(ctx context.Context) (net.Conn, error)

	Bed     *testbed.Testbed // keeps the names and logs of its processes; nil: none will be started
	Machine testbed.Machine  // that it runs on; nil: the agent is asked
	Alive   time.Duration    // interval of the calls that keep the agent alive; 0: suits DefaultOrphaned
}

// Host is a host behind an agent.
type Host struct {
	opt   Options
	http  *http.Client
	lost  *atomic.Pointer[error] // why the agent no longer answers; shared by all hosts behind it
	close context.CancelFunc
	of    *Host // the first host of its machine; nil: this one
	cpus  atomic.Int64

	mu    sync.Mutex
	procs []testbed.Process // all that were ever started
}

var _ testbed.Remote = (*Host)(nil)

// Reach connects to an agent, and stops everything that was started through it before: a lost machine may
// have come back with its processes. The caller must Close the host, which stops nothing on it.
func Reach(ctx context.Context, opt Options) (*Host, error) {
	config, err := opt.Credentials.config()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig: config, Protocols: new(http.Protocols),
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return opt.Dial(ctx) },
		TLSHandshakeTimeout: pingTimeout,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	transport.Protocols.SetHTTP2(true)
	opt.On = cmp.Or(opt.On, opt.Name)
	if opt.Alive <= 0 {
		opt.Alive = DefaultOrphaned / 10
	}
	h := &Host{opt: opt, http: &http.Client{Transport: transport}, lost: new(atomic.Pointer[error])}
	if err := h.call(ctx, "/agent/Begin"); err != nil {
		transport.CloseIdleConnections()
		return nil, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	h.close = func() {
		end()
		transport.CloseIdleConnections()
	}
	go h.stayAlive(life)
	return h, nil
}

// Beside returns another host on the same machine, behind the same agent.
func (h *Host) Beside(name string) *Host {
	opt := h.opt
	opt.Name = name
	return &Host{opt: opt, http: h.http, lost: h.lost, close: func() {}, of: h}
}

// alive is a call that only checks whether the agent answers.
const alive = "/host/Name"

// lostAfter is the number of unanswered calls in a row after which an agent is lost.
const lostAfter = 3

func (h *Host) stayAlive(ctx context.Context) {
	for failed := 0; failed < lostAfter && timing.Pause(ctx, h.opt.Alive); {
		call, cancel := context.WithTimeout(ctx, max(h.opt.Alive, time.Second))
		err := h.call(call, alive)
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

// Close disconnects from the agent, which ends on its own after a while.
func (h *Host) Close() { h.close() }

// Name implements testbed.Host.
func (h *Host) Name() string { return h.opt.Name }

// Addr implements testbed.Host.
func (h *Host) Addr() netip.Addr { return h.opt.Addr }

// Port implements testbed.Host.
func (h *Host) Port(ctx context.Context, want int) (int, error) {
	return ask[int](ctx, h, "/host/Port", want)
}

// Traffic implements testbed.Host.
func (h *Host) Traffic() (rx, tx float64) {
	if h.hear(context.Background(), "/host/Traffic", nil, nil, &rx, &tx) != nil {
		return math.NaN(), math.NaN()
	}
	return rx, tx
}

// Respond implements testbed.Host.
func (h *Host) Respond(ctx context.Context) (at netip.AddrPort, stop func(), err error) {
	o, err := h.open(ctx, "/agent/Respond", nil, nil, &at)
	if err != nil {
		return at, nil, err
	}
	return at, o.end, nil
}

// measureLimit limits a measurement of a slow, long or lossy link.
const measureLimit = 10 * time.Minute

// Measure implements testbed.Host.
func (h *Host) Measure(ctx context.Context, to netip.AddrPort, want link.Want, tol float64) (record.LinkCheck, error) {
	ctx, cancel := context.WithTimeout(ctx, measureLimit)
	defer cancel()
	return ask[record.LinkCheck](ctx, h, "/host/Measure", to, want, tol)
}

// Mesh implements testbed.Remote.
func (h *Host) Mesh(ctx context.Context, q testbed.MeshCall) (testbed.MeshAnswer, error) {
	return ask[testbed.MeshAnswer](ctx, h, "/testbed/Mesh", q)
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

// Start implements testbed.Host. It streams the input and output of the process until its end.
func (h *Host) Start(ctx context.Context, c testbed.Command) (testbed.Process, error) {
	q := c
	q.Stdin, q.Stdout, q.Ready = nil, nil, nil
	q.Name = h.opt.Bed.Label(h.opt.Name, c.Name)
	p := &process{host: h, done: make(chan struct{})}
	o, err := h.open(ctx, "/agent/Start", c.Stdin, []any{q, c.Stdin != nil, c.Stdout != nil}, &p.id, &p.name, &p.there)
	if err != nil {
		c.Close()
		return nil, err
	}
	p.log = filepath.Join(h.opt.Bed.Logs(), filepath.Base(p.there))
	if c.Stdin != nil || c.Stdout != nil {
		p.carry(c, o)
	} else {
		o.end()
	}
	h.mu.Lock()
	for _, q := range h.procs {
		if q := q.(*process); q.log == p.log {
			p.before = q
		}
	}
	h.procs = append(h.procs, p)
	h.mu.Unlock()
	go p.follow()
	if err := testbed.AwaitReady(ctx, p, c); err != nil {
		return nil, fmt.Errorf("testbed: start %s: %w", c.Name, err)
	}
	return p, nil
}
