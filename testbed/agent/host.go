package agent

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	opt.On, opt.Alive = cmp.Or(opt.On, opt.Name), cmp.Or(opt.Alive, DefaultOrphaned/10)
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

// Dial opens a connection that lives as long as the call: received data is streamed after
// the answer, and data that the caller streams is sent.
func (s *server) Dial(ctx context.Context, x *exchange, network, address string) {
	if !strings.HasPrefix(network, "tcp") {
		x.answer(fmt.Errorf("agent: dial %s: %w: only TCP passes through an agent", network, errors.ErrUnsupported))
		return
	}
	c, err := s.host.Dial(ctx, network, address)
	if err != nil {
		x.answer(err)
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })() // when the caller is gone
	if !x.answer(nil, c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort()) {
		return
	}
	go func() {
		if _, err := io.Copy(c, x.in); err != nil {
			return
		}
		if half, ok := c.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	if _, err := io.Copy(x, c); err != nil && !errors.Is(err, net.ErrClosed) {
		x.fail(err)
	}
}

// conn is a connection held by the agent: our end of a pipe, which supports deadlines.
type conn struct {
	net.Conn
	local, remote net.Addr
	end           func()
	err           atomic.Pointer[error] // why the agent's side ended, unless the data ended
}

// Dial implements testbed.Host. Only TCP passes through an agent.
func (h *Host) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var local, remote netip.AddrPort
	ours, theirs := net.Pipe()
	from, err := h.open(ctx, "/agent/Dial", theirs, []any{network, addr}, &local, &remote)
	if err != nil {
		_ = theirs.Close()
		return nil, err
	}
	k := &conn{Conn: ours, local: net.TCPAddrFromAddrPort(local), remote: net.TCPAddrFromAddrPort(remote),
		end: from.end}
	go func() {
		_, err := io.Copy(theirs, from)
		broken := err != nil && !errors.Is(err, io.ErrClosedPipe) // ErrClosedPipe: closed by us
		if broken {
			k.err.Store(&err)
		}
		if _ = theirs.Close(); broken {
			k.end()
		}
	}()
	return k, nil
}

func (k *conn) Read(b []byte) (int, error) {
	n, err := k.Conn.Read(b)
	return n, k.why(err)
}

func (k *conn) Write(b []byte) (int, error) {
	n, err := k.Conn.Write(b)
	return n, k.why(err)
}

// why replaces the pipe's error by the agent's.
func (k *conn) why(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if e := k.err.Load(); e != nil {
		return fmt.Errorf("through the agent: %w", *e)
	}
	return err
}

// lingering is how long written data may take to be sent after Close.
const lingering = 10 * time.Second

func (k *conn) Close() error {
	time.AfterFunc(lingering, k.end)
	return k.Conn.Close()
}

func (k *conn) LocalAddr() net.Addr  { return k.local }
func (k *conn) RemoteAddr() net.Addr { return k.remote }

// HostsVariable is an environment variable for tests: "agents" puts each host behind its
// own agent ([Wanted]). It is not part of any plan.
const HostsVariable = "PLIMSOLL_HOSTS"

// Wanted returns the Hosts of [testbed.Options] that the environment asks for; nil: none.
func Wanted() testbed.Hosts {
	if os.Getenv(HostsVariable) == "agents" {
		return Behind
	}
	return nil
}

// Behind creates a host on this machine and starts an agent in its network. The returned
// host is used only through the agent. Calls to it use a Unix socket, which belongs to no
// network, so they do not cross the host's link.
func Behind(ctx context.Context, t *testbed.Testbed, name string) (testbed.Host, error) {
	at, err := t.LocalHost(name, 0)
	if err != nil {
		return nil, err
	}
	return launch(ctx, t, at, DefaultOrphaned)
}

func launch(ctx context.Context, t *testbed.Testbed, at testbed.Host, orphaned time.Duration) (h *Host, err error) {
	ours, theirs, err := NewCredentials()
	dir, failed := t.Scratch("agent")
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "socket")
	p, err := at.Start(ctx, testbed.Command{
		Name: "agent", Role: testbed.RoleAgent, Stdin: io.NopCloser(bytes.NewReader(theirs.Encoded())),
		Args: t.Self("node", "agent", "--listen", "unix:"+socket, "--name", at.Name(), "--address", at.Addr().String(),
			"--dir", dir, "--orphaned", orphaned.String()),
		Env: []string{"TMPDIR=" + os.TempDir()},
		Ready: func(ctx context.Context) (err error) {
			h, err = Reach(ctx, Options{Name: at.Name(), Addr: at.Addr(), Credentials: ours, Bed: t,
				Machine: at.Machine(), Alive: orphaned / 10, Dial: func(ctx context.Context) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, "unix", socket)
				}})
			return err
		},
		StopTime: stopTimeout,
	})
	if err != nil {
		return nil, err
	}
	go func() {
		<-p.Done()
		h.Close()
	}()
	return h, nil
}
