// Package fileserver is a node that serves a directory over HTTP: nginx and Plimsoll's own server
// differ only in how they are started.
package fileserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/selfsigned"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Place is a server's location and address, from which its configuration is made.
type Place struct {
	Host    testbed.Host
	Root    string // the node's own directory, on its host
	Data    string // the served directory, within Root; it contains the probe
	Address string // IP:port
	TLS     *selfsigned.Files
}

// Node is a running file server.
type Node struct {
	member.Served
	disk.Dir
	place Place
}

// Cluster starts a server on each host; command returns how to start it.
func Cluster(ctx context.Context, name string, d system.Deployment, identity map[string]string,
	command func(Place) (testbed.Command, error)) (system.Cluster, error) {
	identity["tls"] = d.Options["tls"]
	identity["h2"] = strconv.FormatBool(d.Options.Bool("tls") && d.Options.Bool("h2"))
	return group.Start(ctx, len(d.Hosts), 1, identity, func(ctx context.Context, i int) (group.Node, error) {
		return start(ctx, name, d, d.Hosts[i], command)
	})
}

// start creates the directories and, if the deployment's option "tls" is set, the certificate. It
// starts the server and waits until the client's host can fetch the probe.
func start(ctx context.Context, name string, d system.Deployment, h testbed.Host,
	command func(Place) (testbed.Command, error)) (*Node, error) {
	port, err := d.Port(ctx, h)
	if err != nil {
		return nil, err
	}
	root := d.DirOf(h)
	n := &Node{Served: member.Served{Process: member.Process{System: name, Label: name + "-" + h.Name(), Host: h}},
		place: Place{Host: h, Root: root, Data: filepath.Join(root, "data"), Address: system.JoinPort(h, port)}}
	if n.Dir, err = disk.NewDir(ctx, h.Files(), n.place.Data); err != nil {
		return nil, err
	}
	if d.Options.Bool("tls") {
		files, err := selfsigned.Write(ctx, d, h)
		if err != nil {
			return nil, err
		}
		n.place.TLS = &files
	}
	cmd, err := command(n.place)
	if err != nil {
		return nil, err
	}
	n.Probe = disk.Probe
	base, _ := n.Target(n.Probe) // a valid name
	if n.Reader, err = web.NewReader(name, d.Client.Dial, base, n.Target); err != nil {
		return nil, err
	}
	cmd.Dir, cmd.Ready = root, n.Serves
	if err = n.Run(ctx, cmd); err != nil {
		n.Client.Close()
		return nil, fmt.Errorf("start: %w", err)
	}
	return n, nil
}

// Target implements system.HTTPServer.
func (n *Node) Target(ref system.Ref) (system.HTTPTarget, error) {
	if err := disk.Valid(string(ref)); err != nil {
		return system.HTTPTarget{}, fmt.Errorf("%s: %w: %w", n.System, err, system.ErrNotFound)
	}
	t := system.HTTPTarget{URL: &url.URL{Scheme: "http", Host: n.place.Address, Path: "/" + string(ref)}}
	if n.place.TLS != nil {
		t.URL.Scheme, t.CAFile = "https", n.place.TLS.CA
	}
	return t, nil
}

// Put implements system.Store by HTTP PUT.
func (n *Node) Put(ctx context.Context, name string, size int64, r io.Reader) (system.Ref, error) {
	ref := n.Named(name)
	if err := n.send(ctx, http.MethodPut, ref, size, r); err != nil {
		return "", err
	}
	return ref, nil
}

// Named implements system.Namer.
func (n *Node) Named(name string) system.Ref { return system.Ref(disk.FileName(name)) }

func (n *Node) send(ctx context.Context, method string, ref system.Ref, size int64, r io.Reader) error {
	t, err := n.Target(ref)
	if err == nil {
		_, err = n.Client.Send(ctx, method, t, size, r)
	}
	return err
}

// Stat implements system.Stater.
func (n *Node) Stat(ctx context.Context, ref system.Ref) (system.Object, error) {
	o, err := n.Reader.Stat(ctx, ref)
	o.Name = disk.Name(string(ref))
	return o, err
}

// Update implements system.Updater with a PUT of the same name.
func (n *Node) Update(ctx context.Context, ref system.Ref, size int64, r io.Reader) error {
	return n.send(ctx, http.MethodPut, ref, size, r)
}

// Delete implements system.Deleter by HTTP DELETE.
func (n *Node) Delete(ctx context.Context, ref system.Ref) error {
	return n.send(ctx, http.MethodDelete, ref, 0, http.NoBody)
}
