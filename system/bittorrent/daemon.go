package bittorrent

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

const (
	// metainfoDir holds what a publisher hands over to leechers, out of band.
	metainfoDir = "metainfo"
	// answer is how long a node may take to answer what needs no work.
	answer = 10 * time.Second
)

// daemon is one process, and the way to its control API: from the host to
// itself, so that nothing but BitTorrent crosses a link.
type daemon struct {
	d       system.Deployment
	host    testbed.Host
	label   string
	dir     string      // what it keeps
	peer    string      // address of its peers' side
	control string      // address of its control API
	local   *web.Client // from the host to itself

	mu   sync.Mutex
	proc *testbed.Process
}

func startDaemon(ctx context.Context, d system.Deployment, h testbed.Host, label string) (*daemon, error) {
	var port int
	var err error
	if h == d.Client { // option port is that of the hosts
		port, err = h.FreePort(ctx)
	} else {
		port, err = d.Port(ctx, h)
	}
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
	n := &daemon{d: d, host: h, label: name + "/" + label, dir: filepath.Join(d.Dir, label), peer: system.JoinPort(h, port), control: system.JoinPort(h, control)}
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
	args := []string{"--control=" + n.control, "--listen=" + n.peer, "--dir=" + n.dir}
	for _, k := range []string{"transport", "piece", "max_connections", "encryption", "upload_limit", "download_limit"} {
		args = append(args, "--"+k+"="+n.d.Options[k])
	}
	cmd, err := n.d.Node(name, args...)
	if err != nil {
		return err
	}
	io := map[string]string{"file": "classic", "mmap": "mmap"}[n.d.Options["storage"]]
	proc, err := n.host.Start(ctx, testbed.Command{
		Name: n.label, Role: "system", Args: cmd, Dir: n.d.Dir, Ready: n.ping,
		Env: []string{"TORRENT_STORAGE_DEFAULT_FILE_IO=" + io}, // the library has no other way to be told
	})
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
		return fmt.Errorf("bittorrent: the process %s has not been started", n.label)
	}
	select {
	case <-p.Done():
		return fmt.Errorf("bittorrent: the process %s has ended (%v); see %s", p.Name(), p.Err(), p.LogPath())
	default:
		return nil
	}
}

func (n *daemon) url(path string) *url.URL {
	return &url.URL{Scheme: "http", Host: n.control, Path: path}
}

// of is the URL of what the node has of ref.
func (n *daemon) of(path string, ref system.Ref) (*url.URL, error) {
	if _, err := parse(string(ref)); err != nil {
		return nil, fmt.Errorf("bittorrent: %q is no info-hash (%w): %w", ref, err, system.ErrBadRef)
	}
	return n.url(path + string(ref)), nil
}

// call asks what needs no work.
func (n *daemon) call(ctx context.Context, method string, u *url.URL, in, out any) error {
	if err := n.alive(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	err := n.local.JSON(ctx, method, u, nil, in, out)
	if web.Status(err) == http.StatusNotFound {
		err = fmt.Errorf("%w: %w", err, system.ErrNotFound)
	}
	return err
}

// ping says whether the process answers.
func (n *daemon) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	return n.local.JSON(ctx, http.MethodGet, n.url(healthPath), nil, nil, nil)
}

func (n *daemon) health(ctx context.Context) error {
	return n.call(ctx, http.MethodGet, n.url(healthPath), nil, nil)
}

// publish puts content on the node's disk. The metainfo is left where the other
// nodes' fetch finds it.
func (n *daemon) publish(ctx context.Context, title string, size int64, r io.Reader) (system.Ref, error) {
	if err := n.alive(); err != nil {
		return "", err
	}
	if size < 1 {
		return "", fmt.Errorf("bittorrent: %q has %d bytes: a torrent has at least one", title, size)
	}
	u := n.url(publishPath)
	u.RawQuery = url.Values{"name": {title}}.Encode()
	info, err := n.local.Call(ctx, web.Call{Method: http.MethodPut, URL: u, Body: r, Size: size})
	if err != nil {
		return "", err
	}
	ref := system.Ref(hashOf(info).HexString())
	if err := writeWhole(filepath.Join(n.d.Dir, metainfoDir, string(ref)), info); err != nil {
		return "", fmt.Errorf("bittorrent: metainfo of %q: %w", title, err)
	}
	return ref, nil
}

// fetch gives the node a task.
func (n *daemon) fetch(ctx context.Context, ref system.Ref, from []string) error {
	u, err := n.of(fetchPath, ref)
	if err != nil {
		return err
	}
	task := task{From: from}
	for _, a := range from {
		if err := checkAddress(a); err != nil {
			return err
		}
	}
	if n.d.Options["metainfo"] == "file" {
		task.Info, err = os.ReadFile(filepath.Join(n.d.Dir, metainfoDir, string(ref)))
		if errors.Is(err, os.ErrNotExist) {
			err = nil // published by nobody here: the swarm may know
		}
		if err != nil {
			return fmt.Errorf("bittorrent: metainfo of %s: %w", ref, err)
		}
	}
	return n.call(ctx, http.MethodPost, u, task, nil)
}

func checkAddress(a string) error {
	if _, err := netip.ParseAddrPort(a); err != nil {
		return fmt.Errorf("bittorrent: %q is no address of a peer, IP:PORT: %w", a, err)
	}
	return nil
}

func (n *daemon) connect(ctx context.Context, address string) error {
	if err := checkAddress(address); err != nil {
		return err
	}
	return n.call(ctx, http.MethodPost, n.url(connectPath), address, nil)
}

func (n *daemon) fetched(ctx context.Context, ref system.Ref) (f system.Fetched, err error) {
	u, err := n.of(fetchPath, ref)
	if err != nil {
		return f, err
	}
	return f, n.call(ctx, http.MethodGet, u, nil, &f)
}

// await returns when the node has all of ref.
func (n *daemon) await(ctx context.Context, ref system.Ref) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		f, err := n.fetched(ctx, ref)
		if err != nil || f.Complete {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("bittorrent: %s has %d of %d bytes of %s: %w", n.label, f.Verified, f.Size, ref, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// content writes what path gives of ref to w: the file as it is on disk, or the
// bytes as they come.
func (n *daemon) content(ctx context.Context, path string, ref system.Ref, w io.Writer) error {
	u, err := n.of(path, ref)
	if err != nil {
		return err
	}
	if err := n.alive(); err != nil {
		return err
	}
	return n.local.Get(ctx, system.HTTPTarget{URL: u}, w)
}

func (n *daemon) forget(ctx context.Context, ref system.Ref) error {
	u, err := n.of(fetchPath, ref)
	if err != nil {
		return err
	}
	return n.call(ctx, http.MethodDelete, u, nil, nil)
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
			return fmt.Errorf("bittorrent: empty the store of %s: %w", n.label, err)
		}
	}
	if err := n.run(ctx); err != nil {
		return fmt.Errorf("bittorrent: restart: %w", err)
	}
	return nil
}

// stop ends the process; it may be called again, and on a daemon that never ran.
func (n *daemon) stop(ctx context.Context) error {
	if n == nil {
		return nil
	}
	n.local.Close()
	p := n.process()
	if p == nil {
		return nil
	}
	return p.Stop(ctx)
}
