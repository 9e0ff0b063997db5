// Package member is a node of an embedded swarm: its process, and the control
// API through which it gets its tasks on its own host, so that nothing but what
// nodes say to each other crosses a link.
package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// answer is how long a node may take to answer what needs no work.
const answer = 10 * time.Second

// Kind is what the nodes of a swarm have in common.
type Kind struct {
	Name  string             // the system's
	Check func(string) error // what is wrong with a ref
}

// Daemon is one process, and the way to its control API.
type Daemon struct {
	kind    Kind
	host    testbed.Host
	label   string
	scratch string
	dir     string
	command []string
	control string
	local   *web.Client // from the host to itself

	mu   sync.Mutex
	proc *testbed.Process
}

// Start runs a node that keeps what it has in d.Dir/label, and waits until it is
// ready. listen is the address of its peers' side; args are added to --control=ADDRESS and
// --dir=DIRECTORY.
func (k Kind) Start(ctx context.Context, d system.Deployment, h testbed.Host, label, listen string, args ...string) (*Daemon, error) {
	taken, err := netip.ParseAddrPort(listen)
	if err != nil {
		return nil, err
	}
	port, err := h.FreePort(ctx)
	for err == nil && port == int(taken.Port()) {
		port, err = h.FreePort(ctx)
	}
	if err != nil {
		return nil, err
	}
	n := &Daemon{kind: k, host: h, label: k.Name + "/" + label, scratch: d.Dir, dir: filepath.Join(d.Dir, label), control: system.JoinPort(h, port)}
	if n.command, err = d.Node(k.Name, append([]string{"--control=" + n.control, "--dir=" + n.dir}, args...)...); err != nil {
		return nil, err
	}
	if n.local, err = web.New(k.Name, h.Dial, system.HTTPTarget{URL: n.url("/")}); err != nil {
		return nil, err
	}
	if err := n.run(ctx); err != nil {
		return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
	}
	return n, nil
}

func (n *Daemon) run(ctx context.Context) error {
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return err
	}
	proc, err := n.host.Start(ctx, testbed.Command{Name: n.label, Role: "system", Args: n.command, Dir: n.scratch, Ready: n.ping})
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.proc = proc
	n.mu.Unlock()
	return nil
}

func (n *Daemon) process() *testbed.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proc
}

// Processes implements system.Node.
func (n *Daemon) Processes() []*testbed.Process {
	if p := n.process(); p != nil {
		return []*testbed.Process{p}
	}
	return nil
}

// alive says whether the process has not ended.
func (n *Daemon) alive() error {
	p := n.process()
	if p == nil {
		return fmt.Errorf("%s: the process %s has not been started", n.kind.Name, n.label)
	}
	select {
	case <-p.Done():
		return fmt.Errorf("%s: the process %s has ended (%v); see %s", n.kind.Name, p.Name(), p.Err(), p.LogPath())
	default:
		return nil
	}
}

func (n *Daemon) url(path string) *url.URL {
	return &url.URL{Scheme: "http", Host: n.control, Path: path}
}

func (n *Daemon) check(ref system.Ref) error {
	if err := n.kind.Check(string(ref)); err != nil {
		return fmt.Errorf("%s: %q is no ref (%w): %w", n.kind.Name, ref, err, system.ErrBadRef)
	}
	return nil
}

// call asks what needs no work.
func (n *Daemon) call(ctx context.Context, method, path string, in, out any) error {
	if err := n.alive(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	err := n.local.JSON(ctx, method, n.url(path), nil, in, out)
	if web.Status(err) == http.StatusNotFound {
		err = fmt.Errorf("%w: %w", err, system.ErrNotFound)
	}
	return err
}

func (n *Daemon) of(ctx context.Context, method string, ref system.Ref, in, out any) error {
	if err := n.check(ref); err != nil {
		return err
	}
	return n.call(ctx, method, fetchPath+string(ref), in, out)
}

// ping says whether the process answers.
func (n *Daemon) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	return n.local.JSON(ctx, http.MethodGet, n.url(healthPath), nil, nil, nil)
}

// Health implements system.Healther.
func (n *Daemon) Health(ctx context.Context) error {
	return n.call(ctx, http.MethodGet, healthPath, nil, nil)
}

// Publish puts content on the node's disk and returns what the node says of it.
func (n *Daemon) Publish(ctx context.Context, title string, size int64, r io.Reader) ([]byte, error) {
	if err := n.alive(); err != nil {
		return nil, err
	}
	if size < 1 {
		return nil, fmt.Errorf("%s: %q has %d bytes: a content has at least one", n.kind.Name, title, size)
	}
	return n.local.Call(ctx, web.Call{Method: http.MethodPut, URL: n.url(publishPath), Body: r, Size: size})
}

// Fetch gives the node a task, as JSON.
func (n *Daemon) Fetch(ctx context.Context, ref system.Ref, task any) error {
	return n.of(ctx, http.MethodPost, ref, task, nil)
}

// Fetched implements system.Spreader. Counts begin anew with the process.
func (n *Daemon) Fetched(ctx context.Context, ref system.Ref) (f system.Fetched, err error) {
	return f, n.of(ctx, http.MethodGet, ref, nil, &f)
}

// ReadBack implements system.Spreader.
func (n *Daemon) ReadBack(ctx context.Context, ref system.Ref, w io.Writer) error {
	if err := n.check(ref); err != nil {
		return err
	}
	if err := n.alive(); err != nil {
		return err
	}
	return n.local.Get(ctx, system.HTTPTarget{URL: n.url(filePath + string(ref))}, w)
}

// Forget implements system.Spreader.
func (n *Daemon) Forget(ctx context.Context, ref system.Ref) error {
	return n.of(ctx, http.MethodDelete, ref, nil, nil)
}

// Connect tells the node of a peer.
func (n *Daemon) Connect(ctx context.Context, address string) error {
	return n.call(ctx, http.MethodPost, connectPath, address, nil)
}

// Kill implements system.Restarter.
func (n *Daemon) Kill(context.Context) error {
	p := n.process()
	if p == nil {
		return nil
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel() // no time to end by itself
	return p.Stop(ended)
}

// Restart implements system.Restarter: at the same addresses.
func (n *Daemon) Restart(ctx context.Context, keep bool) error {
	if p := n.process(); p != nil {
		if err := p.Stop(ctx); err != nil {
			return err
		}
	}
	n.local.Close()
	if !keep {
		if err := os.RemoveAll(n.dir); err != nil {
			return fmt.Errorf("%s: empty the store of %s: %w", n.kind.Name, n.label, err)
		}
	}
	if err := n.run(ctx); err != nil {
		return fmt.Errorf("%s: restart: %w", n.kind.Name, err)
	}
	return nil
}

// Stop implements group.Node; it may be called again.
func (n *Daemon) Stop(ctx context.Context) error {
	n.local.Close()
	p := n.process()
	if p == nil {
		return nil
	}
	return p.Stop(ctx)
}
