// Package member is the base of systems whose nodes are members of a swarm: processes that can be
// stopped and started again, and that get contents from each other. Plimsoll controls each node
// from its own host, so that only traffic between nodes crosses a link.
package member

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Process is a daemon on a host that can be stopped and started again. Systems embed it.
type Process struct {
	System string // for errors
	Label  string // the process's name in its log and in messages
	Host   testbed.Host

	mu    sync.Mutex
	procs []testbed.Process
}

// Run starts the daemon and waits until it is ready. It stops a running process first.
func (p *Process) Run(ctx context.Context, c testbed.Command) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	c.Name, c.Role = p.Label, "system"
	proc, err := p.Host.Start(ctx, c)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.procs = []testbed.Process{proc}
	return nil
}

// Processes implements system.Node with the daemon's latest process.
func (p *Process) Processes() []testbed.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.procs
}

// Alive returns an error if the process has ended or was not started.
func (p *Process) Alive() error {
	switch all := p.Processes(); {
	case len(all) == 0:
		return fmt.Errorf("%s: the process %s has not been started", p.System, p.Label)
	case testbed.Ended(all[0]):
		return fmt.Errorf("%s: %w", p.System, ended(all[0]))
	}
	return nil
}

// ended returns how a process has ended.
func ended(p testbed.Process) error {
	err := cmp.Or(p.Err(), errors.New("without an error"))
	return fmt.Errorf("the process %s has ended (%w); see %s", p.Name(), err, p.LogPath())
}

// WhileAlive returns a context derived from ctx that ends when one of the processes ends, with that
// as the cause.
func WhileAlive(ctx context.Context, processes ...testbed.Process) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	for _, p := range processes {
		go func() {
			select {
			case <-ctx.Done():
			case <-p.Done():
				cancel(ended(p))
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

// Explain adds to err that a process has ended, if one has: alive comes from [WhileAlive], or is
// nil.
func Explain(alive context.Context, err error) error {
	if err == nil || alive == nil || alive.Err() == nil {
		return err
	}
	if cause := context.Cause(alive); cause != context.Canceled {
		return fmt.Errorf("%w; %w", err, cause)
	}
	return err
}

// Kill implements system.Restarter; it does not fail if nothing runs.
func (p *Process) Kill(context.Context) error {
	now, cancel := context.WithCancel(context.Background())
	cancel() // no time for a clean shutdown
	return p.Stop(now)
}

// Stop shuts the process down cleanly; it may be called again.
func (p *Process) Stop(ctx context.Context) (err error) {
	for _, proc := range p.Processes() {
		err = proc.Stop(ctx)
	}
	return err
}

// answer limits the time for an answer that requires no work and normally takes milliseconds.
const answer = 30 * time.Second

// Controlled is a process with an HTTP API that is called from its own host.
type Controlled struct {
	Process
	Control string      // address of the API
	Listen  string      // address for peers: on the port that was asked for, if any
	Header  http.Header // of every call
	Local   *web.Client
	d       system.Deployment
}

// NewControlled finds ports for the API and for peers on the host. It starts nothing.
func NewControlled(ctx context.Context, d system.Deployment, name string, h testbed.Host, label string) (
	*Controlled, error) {
	port, err := d.Port(ctx, h)
	if err != nil {
		return nil, err
	}
	ports, err := Ports(ctx, h, []int{port}, 1)
	if err != nil {
		return nil, err
	}
	c := &Controlled{Process: Process{System: name, Label: name + "/" + label, Host: h}, d: d,
		Control: system.JoinPort(h, ports[0]), Listen: system.JoinPort(h, port)}
	c.Local = web.Patient(name, h.Dial) // a publication is answered only once it is served
	return c, nil
}

// RunNode starts the process of this binary, `plimsoll node NAME CONFIG`, and waits until it is
// ready. It stops a running process first. env is added to its environment: KEY=VALUE.
func (c *Controlled) RunNode(ctx context.Context, config any, env ...string) error {
	command, err := c.d.Node(c.System, Argument(config))
	if err != nil {
		return err
	}
	return c.Run(ctx, testbed.Command{Args: command, Dir: c.d.DirOf(c.Host), Ready: c.Ready, Env: env})
}

// Ports returns n free ports of a host, all different and none in taken: the kernel may return the
// same port twice.
func Ports(ctx context.Context, h testbed.Host, taken []int, n int) ([]int, error) {
	var ports []int
	for len(ports) < n {
		p, err := h.Port(ctx, 0)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(taken, p) && !slices.Contains(ports, p) {
			ports = append(ports, p)
		}
	}
	return ports, nil
}

// URL returns the URL of path in the API.
func (c *Controlled) URL(path string) *url.URL {
	return &url.URL{Scheme: "http", Host: c.Control, Path: path}
}

// Call makes a request that requires no work. Status 404 returns system.ErrNotFound. If the process
// has ended, the error reports that.
func (c *Controlled) Call(ctx context.Context, method, path string, in, out any) error {
	err := c.Ask(ctx, method, path, in, out)
	if gone := c.Alive(); err != nil && gone != nil {
		return gone
	}
	return err
}

// Ask is Call for a process that may still be starting.
func (c *Controlled) Ask(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	err := c.Local.JSON(ctx, method, c.URL(path), c.Header, in, out)
	if web.Status(err) == http.StatusNotFound {
		err = fmt.Errorf("%w: %w", err, system.ErrNotFound)
	}
	return err
}

// Health implements system.Healther.
func (c *Controlled) Health(ctx context.Context) error {
	return c.Call(ctx, http.MethodGet, HealthPath, nil, nil)
}

// Ready is Health for a process that is starting.
func (c *Controlled) Ready(ctx context.Context) error {
	return c.Ask(ctx, http.MethodGet, HealthPath, nil, nil)
}

// Stop shuts the process down cleanly; it may be called again.
func (c *Controlled) Stop(ctx context.Context) error {
	c.Local.Close()
	return c.Process.Stop(ctx)
}

// Served is a process that serves objects over HTTP. Systems embed it.
type Served struct {
	web.Reader
	Process
	Probe system.Ref // of an object with the content disk.ProbeContent
}

// Serves fetches the probe over a new connection.
func (s *Served) Serves(ctx context.Context) error {
	var got bytes.Buffer
	fresh := s.Reader
	fresh.Client = s.Client.Fresh()
	if err := fresh.Get(ctx, s.Probe, &got); err != nil {
		return fmt.Errorf("health probe failed: %w", err)
	}
	if !bytes.Equal(got.Bytes(), disk.ProbeContent) {
		return fmt.Errorf("%s: health probe of %s: got %d other bytes than stored", s.System, s.Label, got.Len())
	}
	return nil
}

// Health implements system.Healther with a fetch of the probe over a new connection.
func (s *Served) Health(ctx context.Context) error {
	if err := s.Alive(); err != nil {
		return err
	}
	return s.Serves(ctx)
}

// Stop implements group.Node.
func (s *Served) Stop(ctx context.Context) error {
	s.Client.Close()
	return s.Process.Stop(ctx)
}
