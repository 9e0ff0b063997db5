// Package fileserver is a node that serves a directory over HTTP, whatever the
// program: nginx and our own differ in how they are started only.
package fileserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/selfsigned"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Place is where a server serves from and listens on: what a program's
// configuration is made of.
type Place struct {
	Host    testbed.Host
	Name    string // unique among the deployment's nodes: "nginx-s1"
	Root    string // the node's own directory, on its host
	Data    string // the directory served, within Root, with the probe in it
	Address string // IP:port
	TLS     *selfsigned.Files
}

// Prepare makes the directories, picks the port, and makes the certificate if
// the deployment's option "tls" is set.
func Prepare(ctx context.Context, name string, d system.Deployment, h testbed.Host) (Place, error) {
	fail := func(err error) (Place, error) { return Place{}, fmt.Errorf("%s: %w", name, err) }
	port, err := d.Port(ctx, h)
	if err != nil {
		return fail(err)
	}
	p := Place{Host: h, Name: name + "-" + h.Name(), Address: system.JoinPort(h, port)}
	p.Root = d.DirOf(h)
	p.Data = filepath.Join(p.Root, "data")
	if _, err := disk.NewDir(ctx, h.Files(), p.Data); err != nil {
		return fail(err)
	}
	if d.Options.Bool("tls") {
		files, err := selfsigned.Write(ctx, d, h)
		if err != nil {
			return fail(err)
		}
		p.TLS = &files
	}
	return p, nil
}

// Node is a running file server.
type Node struct {
	web.Reader
	disk.Dir
	name    string
	place   Place
	proc    testbed.Process
	mutable sync.Map // refs of PutMutable
}

// Start runs cmd and waits until it serves the probe to the client host.
func Start(ctx context.Context, name string, d system.Deployment, p Place, cmd testbed.Command) (*Node, error) {
	n := &Node{name: name, place: p, Dir: disk.Dir{Files: p.Host.Files(), Path: p.Data}}
	base, err := n.Target(disk.Probe)
	if err != nil {
		return nil, err
	}
	if n.Reader, err = web.NewReader(name, d.Client.Dial, base, n.Target); err != nil {
		return nil, err
	}
	cmd.Name, cmd.Role = p.Name, "system"
	if cmd.Dir == "" {
		cmd.Dir = p.Root
	}
	cmd.Ready = n.Health
	if n.proc, err = p.Host.Start(ctx, cmd); err != nil {
		n.Client.Close()
		return nil, fmt.Errorf("%s: start: %w", name, err)
	}
	return n, nil
}

// Processes implements system.Node.
func (n *Node) Processes() []testbed.Process { return []testbed.Process{n.proc} }

// Target implements system.HTTPServer.
func (n *Node) Target(ref system.Ref) (system.HTTPTarget, error) {
	if err := disk.Valid(string(ref)); err != nil {
		return system.HTTPTarget{}, fmt.Errorf("%s: %w: %w", n.name, err, system.ErrNotFound)
	}
	t := system.HTTPTarget{URL: &url.URL{Scheme: "http", Host: n.place.Address, Path: "/" + string(ref)}}
	if n.place.TLS != nil {
		t.URL.Scheme, t.CAFile = "https", n.place.TLS.CA
	}
	return t, nil
}

// Put implements system.Node by HTTP PUT.
func (n *Node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	ref := system.Ref(disk.FileName(name))
	if err := n.store(ctx, ref, size, r); err != nil {
		return "", err
	}
	return ref, nil
}

func (n *Node) store(ctx context.Context, ref system.Ref, size int64, r io.Reader) error {
	t, err := n.Target(ref)
	if err != nil {
		return err
	}
	_, err = n.Client.Send(ctx, http.MethodPut, t, size, r)
	return err
}

// Stat implements system.Stater by HTTP HEAD.
func (n *Node) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	size, err := n.StatSize(ctx, ref)
	return system.Object{Name: disk.Name(string(ref)), Ref: ref, Size: size}, err
}

// PutMutable implements system.Updater: every file can be replaced.
func (n *Node) PutMutable(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	ref, err := n.Put(ctx, name, size, r)
	if err == nil {
		n.mutable.Store(ref, true)
	}
	return ref, err
}

// Update implements system.Updater: a PUT of the same name. That would make a
// file which is not there, and asking first would be a request more: so it is
// for the files of PutMutable only.
func (n *Node) Update(ctx context.Context, ref system.Ref, size int64, r io.Reader) error {
	if _, known := n.mutable.Load(ref); !known {
		return fmt.Errorf("%s: update %s: it was not put here to be updated: %w", n.name, ref, system.ErrNotFound)
	}
	return n.store(ctx, ref, size, r)
}

// Delete implements system.Deleter by HTTP DELETE.
func (n *Node) Delete(ctx context.Context, ref system.Ref) error {
	t, err := n.Target(ref)
	if err != nil {
		return err
	}
	n.mutable.Delete(ref)
	_, err = n.Client.Send(ctx, http.MethodDelete, t, 0, http.NoBody)
	return err
}

// Health implements system.Healther: a file from disk over a new connection.
func (n *Node) Health(ctx context.Context) error {
	if err := member.Ended(n.proc); err != nil {
		return fmt.Errorf("%s: %w", n.name, err)
	}
	t, err := n.Target(disk.Probe)
	if err != nil {
		return err
	}
	return n.Client.Probe(ctx, t, disk.ProbeContent)
}

// Stop implements group.Node.
func (n *Node) Stop(ctx context.Context) error {
	n.Client.Close()
	return n.proc.Stop(ctx)
}
