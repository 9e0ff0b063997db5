package member

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Process is a process of ours on a host, `plimsoll node NAME --control=ADDRESS …`,
// and the way to its control API.
type Process struct {
	name    string // the system's
	label   string // the process's
	d       system.Deployment
	host    testbed.Host
	control string
	env     []string    // added to its environment
	local   *web.Client // from the host to itself

	mu   sync.Mutex
	proc *testbed.Process
	args []string // it was last run with
}

// NewProcess has a port of the host for the control API, which is none of taken. It
// starts nothing.
func NewProcess(ctx context.Context, d system.Deployment, name string, h testbed.Host, label string, taken int) (*Process, error) {
	port, err := h.FreePort(ctx)
	for err == nil && port == taken {
		port, err = h.FreePort(ctx)
	}
	if err != nil {
		return nil, err
	}
	p := &Process{name: name, label: name + "/" + label, d: d, host: h, control: system.JoinPort(h, port)}
	if p.local, err = web.New(name, h.Dial, system.HTTPTarget{URL: p.URL("/")}); err != nil {
		return nil, err
	}
	return p, nil
}

// Run starts the process, with args added to --control=ADDRESS, and waits until it
// is ready. What ran before is ended first.
func (p *Process) Run(ctx context.Context, args ...string) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	command, err := p.d.Node(p.name, append([]string{"--control=" + p.control}, args...)...)
	if err != nil {
		return err
	}
	proc, err := p.host.Start(ctx, testbed.Command{Name: p.label, Role: "system", Args: command, Dir: p.d.Dir, Ready: p.ping, Env: p.env})
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.proc, p.args = proc, args
	p.mu.Unlock()
	return nil
}

func (p *Process) process() *testbed.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proc
}

// Processes implements system.Node.
func (p *Process) Processes() []*testbed.Process {
	if proc := p.process(); proc != nil {
		return []*testbed.Process{proc}
	}
	return nil
}

// Alive says whether the process has not ended.
func (p *Process) Alive() error {
	proc := p.process()
	if proc == nil {
		return fmt.Errorf("%s: the process %s has not been started", p.name, p.label)
	}
	select {
	case <-proc.Done():
		return fmt.Errorf("%s: the process %s has ended (%v); see %s", p.name, proc.Name(), proc.Err(), proc.LogPath())
	default:
		return nil
	}
}

// Label is the name of the process in its log and in messages.
func (p *Process) Label() string { return p.label }

// URL is that of path in the control API.
func (p *Process) URL(path string) *url.URL {
	return &url.URL{Scheme: "http", Host: p.control, Path: path}
}

// Call asks what needs no work.
func (p *Process) Call(ctx context.Context, method, path string, in, out any) error {
	if err := p.Alive(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	err := p.local.JSON(ctx, method, p.URL(path), nil, in, out)
	if web.Status(err) == http.StatusNotFound {
		err = fmt.Errorf("%w: %w", err, system.ErrNotFound)
	}
	return err
}

// ping says whether the process answers.
func (p *Process) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	return p.local.JSON(ctx, http.MethodGet, p.URL(HealthPath), nil, nil, nil)
}

// Health implements system.Healther.
func (p *Process) Health(ctx context.Context) error {
	return p.Call(ctx, http.MethodGet, HealthPath, nil, nil)
}

// Kill ends the process at once; no error when nothing runs.
func (p *Process) Kill(context.Context) error {
	proc := p.process()
	if proc == nil {
		return nil
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel() // no time to end by itself
	return proc.Stop(ended)
}

// Stop ends the process in its own way; it may be called again.
func (p *Process) Stop(ctx context.Context) error {
	p.local.Close()
	proc := p.process()
	if proc == nil {
		return nil
	}
	return proc.Stop(ctx)
}
