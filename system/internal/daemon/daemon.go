// Package daemon is the base of systems whose nodes are daemons with an HTTP API. As a store they
// form a [Pair]: the client has its own daemon, and there may be another on the server. In a swarm
// each host has one daemon, a [Peer].
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// API is the API of one daemon.
type API interface {
	member.Backend
	URL() *url.URL
	Client() *web.Client
	Version(ctx context.Context) (string, error)
	Ping(ctx context.Context) error
	Address(ctx context.Context) (string, error) // for Connect and Fetch of another daemon
	// Local reads the object from the daemon's own store; a missing object returns
	// system.ErrNotFound.
	Local(ctx context.Context, ref system.Ref) (*http.Response, error)
	Used(ctx context.Context) (int64, error) // bytes in its store
}

// Access is the access to a daemon; APIs embed it.
type Access struct {
	Web *web.Client
	At  *url.URL
}

// NewAccess makes no request. The caller limits the time until an answer begins: some daemons answer
// only when they are done, after minutes.
func NewAccess(name string, dial web.Dial, at *url.URL) Access {
	return Access{web.Patient(name, dial), at}
}

// URL implements API.
func (b Access) URL() *url.URL { return b.At }

// Client implements API.
func (b Access) Client() *web.Client { return b.Web }

// Program describes the daemons of one deployment.
type Program[A API] struct {
	Name string
	Ref  func(system.Ref) error // validates a ref
	// Client returns the API at a URL, where possibly nothing answers yet.
	Client func(dial web.Dial, base *url.URL) A
	// Init creates the directory of an empty daemon, Command returns its command and creates other
	// files that it needs. first is the API of a pair's first daemon, if it already runs.
	Init    func(ctx context.Context, n *Daemon[A]) error
	Command func(ctx context.Context, n *Daemon[A], first A) (testbed.Command, error)
	Keep    string // the file with the daemon's identity

	// Endless is set if a fetch runs until the daemon's process ends, and daemons do not report to
	// which content their blocks belong: each daemon then fetches one content at a time.
	Endless bool
	Redial  time.Duration // interval at which peers of an incomplete fetch are connected again
}

// Daemon is a process with an API.
type Daemon[A API] struct {
	member.Process
	API     A
	Dir     disk.Dir // its data
	Ports   []int    // of the API, and two more
	command testbed.Command
}

// start starts a daemon with its API at port.
func (k *Program[A]) start(ctx context.Context, d system.Deployment, h testbed.Host, label string, port int,
	first A) (*Daemon[A], error) {
	n := &Daemon[A]{Process: member.Process{System: k.Name, Label: k.Name + "/" + label, Host: h},
		Dir: disk.Of(d, h, label)}
	more, err := member.Ports(ctx, h, []int{port}, 2)
	if err != nil {
		return nil, err
	}
	n.Ports = append([]int{port}, more...)
	n.API = k.Client(h.Dial, n.URL(0))
	if err = k.Init(ctx, n); err == nil {
		n.command, err = k.Command(ctx, n, first)
	}
	if err == nil {
		err = n.run(ctx)
	}
	if err != nil {
		n.API.Client().Close()
		return nil, err
	}
	return n, nil
}

func (n *Daemon[A]) run(ctx context.Context) error {
	n.command.Dir, n.command.Ready = n.Dir.Path, n.API.Ping
	return n.Run(ctx, n.command)
}

// empty removes a daemon's data, except for its identity.
func (k *Program[A]) empty(ctx context.Context, n *Daemon[A]) error {
	files, file, kept := n.Dir.Files, n.Dir.Sub(k.Keep).Path, n.Dir.Path+"."+k.Keep
	if err := files.Rename(file, kept); err != nil {
		return err
	}
	if err := errors.Join(files.RemoveAll(n.Dir.Path), k.Init(ctx, n)); err != nil {
		return err
	}
	return files.Rename(kept, file)
}

// URL returns the URL of the daemon's port i.
func (n *Daemon[A]) URL(i int) *url.URL {
	return &url.URL{Scheme: "http", Host: system.JoinPort(n.Host, n.Ports[i])}
}

// Stop ends the process and its connections; it may be called again.
func (n *Daemon[A]) Stop(ctx context.Context) error {
	n.API.Client().Close()
	return n.Process.Stop(ctx)
}

// endpoints returns the URLs of the daemons to attach to.
func endpoints(name string, opt system.Options) ([]*url.URL, error) {
	var all []*url.URL
	for i, key := range []string{"url", "server_url"} {
		if i > 0 && opt[key] == "" {
			continue
		}
		u, err := web.ParseServer(name, key, opt[key], "http://127.0.0.1:8080")
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// Check reports what is missing: the program or, if endpoints are given, those that do not answer.
func Check(ctx context.Context, s system.System, opt system.Options, program func() error) []system.Problem {
	info := s.Info()
	if opt["url"] == "" {
		return info.Missing(program())
	}
	urls, err := endpoints(info.Name, opt)
	if err != nil {
		return system.WrongOptions(info.Name, err)
	}
	var at []string
	for _, u := range urls {
		at = append(at, web.HostPort(u))
	}
	return web.Unreachable(ctx, info.Name, at)
}

// Swarm starts an independent daemon on each host.
func (k *Program[A]) Swarm(ctx context.Context, d system.Deployment, about map[string]string) (system.Cluster, error) {
	return group.Start(ctx, len(d.Hosts), group.Several, about, func(ctx context.Context, i int) (group.Node, error) {
		port, err := d.Port(ctx, d.Hosts[i])
		if err != nil {
			return nil, err
		}
		n, err := k.start(ctx, d, d.Hosts[i], fmt.Sprintf("node-%d", i+1), port, *new(A))
		if err != nil {
			return nil, err
		}
		p := k.Peered(n)
		if p.Self, err = n.API.Address(ctx); err == nil && i == 0 {
			about["version"], err = n.API.Version(ctx)
		}
		if err != nil {
			return nil, errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
		}
		return p, nil
	})
}

// Pair starts a daemon on the first server host and one on the client, and connects them; node
// converts the pair to a node.
func (k *Program[A]) Pair(
	ctx context.Context, d system.Deployment, about map[string]string, node func(*Pair[A]) group.Node,
) (system.Cluster, error) {
	return k.one(ctx, d, about, (*Pair[A]).start, node)
}

// Attach connects to the running daemons in options url and server_url.
func (k *Program[A]) Attach(
	ctx context.Context, d system.Deployment, about map[string]string, node func(*Pair[A]) group.Node,
) (system.Cluster, error) {
	return k.one(ctx, d, about, (*Pair[A]).attach, node)
}

func (k *Program[A]) one(
	ctx context.Context, d system.Deployment, about map[string]string,
	join func(*Pair[A], context.Context, system.Deployment) error, node func(*Pair[A]) group.Node,
) (system.Cluster, error) {
	p := &Pair[A]{program: k, ours: map[system.Ref]Object{}, NotFoundAfter: d.Options.Duration("not_found_after")}
	err := join(p, ctx, d)
	if err == nil {
		about["version"], err = p.Near().Version(ctx)
	}
	if err == nil && !p.Closed {
		about["endpoint"] = p.Near().URL().Host
	}
	if err == nil && p.Two() {
		if p.address, err = p.Far().Address(ctx); err == nil {
			err = p.Near().Connect(ctx, p.address)
		}
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
	}
	return group.One(about, node(p), nil)
}

// Peer is a daemon as a member of a swarm.
type Peer[A API] struct {
	*Daemon[A]
	member.Contents
	program *Program[A]
}

// Peered returns a running daemon as a member of a swarm.
func (k *Program[A]) Peered(n *Daemon[A]) *Peer[A] {
	p := &Peer[A]{Daemon: n, program: k, Contents: member.Contents{
		Backend: n.API, Name: k.Name, Title: n.Label, Redial: k.Redial, Ref: k.Ref, Runs: n.Alive,
	}}
	if k.Endless {
		p.Abandon = func(ctx context.Context) error { return p.Restart(ctx, true) }
	}
	return p
}

// ReadBack implements system.Member from the daemon's own blocks. It fails unless the content is
// complete: some daemons would fetch the rest.
func (p *Peer[A]) ReadBack(ctx context.Context, ref system.Ref, w io.Writer) error {
	f, err := p.Progress(ctx, ref)
	if err != nil {
		return err
	}
	if !f.Complete {
		return fmt.Errorf("%s: %s has %d of %d bytes of %s: %w", p.program.Name, p.Label, f.Verified, f.Size, ref,
			system.ErrNotFound)
	}
	resp, err := p.API.Local(ctx, ref) // a busy daemon that has the whole content may take long
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = p.API.Client().Copy(resp, w)
	return err
}

// Kill implements system.Restarter.
func (p *Peer[A]) Kill(ctx context.Context) error {
	p.Pause()
	p.API.Client().Close()
	return p.Process.Kill(ctx)
}

// Restart implements system.Restarter. A node that keeps its data continues its tasks from the
// blocks that it has.
func (p *Peer[A]) Restart(ctx context.Context, keep bool) error {
	err := p.Stop(ctx)
	if err == nil && !keep {
		err = p.program.empty(ctx, p.Daemon)
	}
	if err == nil {
		err = p.Restarted(keep, func() error { return p.run(ctx) })
	}
	if err != nil {
		return fmt.Errorf("%s: restart %s: %w", p.program.Name, p.Label, err)
	}
	return nil
}

// Health implements system.Healther.
func (p *Peer[A]) Health(ctx context.Context) error {
	if err := p.API.Ping(ctx); err != nil {
		return fmt.Errorf("%s: health probe of %s failed: %w", p.program.Name, p.Label, cmp.Or(p.Alive(), err))
	}
	return nil
}

// Stop implements group.Node.
func (p *Peer[A]) Stop(ctx context.Context) error {
	p.Pause()
	return p.Daemon.Stop(ctx)
}
