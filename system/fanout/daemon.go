package fanout

import (
	"context"
	"encoding/json"
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

// daemon is one process, and the way to its control API: from the host to
// itself, so that nothing but content crosses a link.
type daemon struct {
	d       system.Deployment
	host    testbed.Host
	label   string
	dir     string      // what it keeps
	serves  string      // address of the content's server
	control string      // address of its control API
	local   *web.Client // from the host to itself

	mu   sync.Mutex
	proc *testbed.Process
}

func startDaemon(ctx context.Context, d system.Deployment, h testbed.Host, label string) (*daemon, error) {
	port, err := d.Port(ctx, h)
	if err != nil {
		return nil, err
	}
	control, err := h.FreePort(ctx)
	for err == nil && control == port {
		control, err = h.FreePort(ctx)
	}
	if err != nil {
		return nil, err
	}
	n := &daemon{d: d, host: h, label: name + "/" + label, dir: filepath.Join(d.Dir, label), serves: system.JoinPort(h, port), control: system.JoinPort(h, control)}
	if n.local, err = web.New(name, h.Dial, system.HTTPTarget{URL: n.url("/")}); err != nil {
		return nil, err
	}
	if err := n.run(ctx); err != nil {
		return nil, errors.Join(err, n.stop(context.WithoutCancel(ctx)))
	}
	return n, nil
}

// run starts the process and waits until it is ready.
func (n *daemon) run(ctx context.Context) error {
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return err
	}
	cmd, err := n.d.Node(name, "--control="+n.control, "--listen="+n.serves, "--dir="+n.dir,
		"--from="+n.d.Options["from"], "--upload_limit="+n.d.Options["upload_limit"])
	if err != nil {
		return err
	}
	proc, err := n.host.Start(ctx, testbed.Command{Name: n.label, Role: "system", Args: cmd, Dir: n.d.Dir, Ready: n.ping})
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.proc = proc
	n.mu.Unlock()
	return nil
}

func (n *daemon) process() *testbed.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.proc
}

// alive says whether the process has not ended.
func (n *daemon) alive() error {
	p := n.process()
	if p == nil {
		return fmt.Errorf("fanout: the process %s has not been started", n.label)
	}
	select {
	case <-p.Done():
		return fmt.Errorf("fanout: the process %s has ended (%v); see %s", p.Name(), p.Err(), p.LogPath())
	default:
		return nil
	}
}

func (n *daemon) url(path string) *url.URL {
	return &url.URL{Scheme: "http", Host: n.control, Path: path}
}

// check says whether ref looks like one.
func (n *daemon) check(ref system.Ref) error {
	if err := checkRef(string(ref)); err != nil {
		return fmt.Errorf("fanout: %q is no ref (%w): %w", ref, err, system.ErrBadRef)
	}
	return nil
}

// call asks what needs no work.
func (n *daemon) call(ctx context.Context, method, path string, in, out any) error {
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

// of is call about a ref.
func (n *daemon) of(ctx context.Context, method string, ref system.Ref, in, out any) error {
	if err := n.check(ref); err != nil {
		return err
	}
	return n.call(ctx, method, fetchPath+string(ref), in, out)
}

// ping says whether the process answers.
func (n *daemon) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	return n.local.JSON(ctx, http.MethodGet, n.url(healthPath), nil, nil, nil)
}

func (n *daemon) health(ctx context.Context) error {
	return n.call(ctx, http.MethodGet, healthPath, nil, nil)
}

// publish puts content on the node's disk.
func (n *daemon) publish(ctx context.Context, title string, size int64, r io.Reader) (m manifest, err error) {
	if err := n.alive(); err != nil {
		return m, err
	}
	if size < 1 {
		return m, fmt.Errorf("fanout: %q has %d bytes: a content has at least one", title, size)
	}
	said, err := n.local.Call(ctx, web.Call{Method: http.MethodPut, URL: n.url(publishPath), Body: r, Size: size})
	if err != nil {
		return m, fmt.Errorf("fanout: publish %q: %w", title, err)
	}
	if err := json.Unmarshal(said, &m); err != nil {
		return m, fmt.Errorf("fanout: publish %q: %w: %w", title, system.ErrAnswer, err)
	}
	return m, nil
}

func (n *daemon) fetch(ctx context.Context, ref system.Ref, t task) error {
	return n.of(ctx, http.MethodPost, ref, t, nil)
}

func (n *daemon) fetched(ctx context.Context, ref system.Ref) (f system.Fetched, err error) {
	return f, n.of(ctx, http.MethodGet, ref, nil, &f)
}

func (n *daemon) forget(ctx context.Context, ref system.Ref) error {
	return n.of(ctx, http.MethodDelete, ref, nil, nil)
}

// content writes the file as it is on the node's disk to w.
func (n *daemon) content(ctx context.Context, ref system.Ref, w io.Writer) error {
	if err := n.check(ref); err != nil {
		return err
	}
	if err := n.alive(); err != nil {
		return err
	}
	return n.local.Get(ctx, system.HTTPTarget{URL: n.url(filePath + string(ref))}, w)
}

func checkAddress(a string) error {
	if _, err := netip.ParseAddrPort(a); err != nil {
		return fmt.Errorf("fanout: %q is no address of a seeder, IP:PORT: %w", a, err)
	}
	return nil
}

func (n *daemon) connect(ctx context.Context, address string) error {
	if err := checkAddress(address); err != nil {
		return err
	}
	return n.call(ctx, http.MethodPost, connectPath, address, nil)
}

// kill ends the process at once.
func (n *daemon) kill(context.Context) error {
	p := n.process()
	if p == nil {
		return nil
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel() // no time to end by itself
	return p.Stop(ended)
}

// restart starts the process again at the same addresses.
func (n *daemon) restart(ctx context.Context, keep bool) error {
	if p := n.process(); p != nil {
		if err := p.Stop(ctx); err != nil {
			return err
		}
	}
	n.local.Close()
	if !keep {
		if err := os.RemoveAll(n.dir); err != nil {
			return fmt.Errorf("fanout: empty the store of %s: %w", n.label, err)
		}
	}
	if err := n.run(ctx); err != nil {
		return fmt.Errorf("fanout: restart: %w", err)
	}
	return nil
}

// stop ends the process; it may be called again, and on a daemon that never ran.
func (n *daemon) stop(ctx context.Context) error {
	n.local.Close()
	p := n.process()
	if p == nil {
		return nil
	}
	return p.Stop(ctx)
}
