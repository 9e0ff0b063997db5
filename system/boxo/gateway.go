package boxo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/ipfs/go-cid"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

var (
	_ system.Healther = (*gatewayNode)(nil)
	_ system.Seeder   = (*gatewayNode)(nil)
)

// gatewayNode is a node that is accessed over HTTP. Get, GetRange and Redial come from web.Reader,
// and run on the client.
type gatewayNode struct {
	member.Served
	local   *web.Client // from the server's host to the server
	address string
	format  string
	dir     disk.Dir // its data
}

func startGateway(ctx context.Context, d system.Deployment, h testbed.Host) (group.Node, error) {
	port, err := d.Port(ctx, h)
	if err != nil {
		return nil, err
	}
	label := name + "-" + h.Name()
	n := &gatewayNode{
		Served:  member.Served{Process: member.Process{System: name, Label: label, Host: h}},
		address: system.JoinPort(h, port), format: d.Options["format"], dir: disk.Of(d, h, label),
	}
	if n.Reader, err = web.NewReader(name, d.Client.Dial, n.at("/"), n.file); err != nil {
		return nil, err
	}
	if n.local, err = web.New(name, h.Dial, n.at("/")); err != nil {
		return nil, err
	}
	command, err := d.Node(name, member.Argument(member.Config{Listen: n.address, Dir: n.dir.Path, Options: d.Options}))
	if err != nil {
		return nil, err
	}
	if err := n.Run(ctx, testbed.Command{Args: command, Dir: n.dir.Path, Ready: n.ready}); err != nil {
		return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
	}
	return n, nil
}

func (n *gatewayNode) at(path string) system.HTTPTarget {
	return system.HTTPTarget{URL: &url.URL{Scheme: "http", Host: n.address, Path: path}}
}

// file returns the target of the object's content, whatever the option format.
func (n *gatewayNode) file(ref system.Ref) (system.HTTPTarget, error) {
	return n.at("/ipfs/" + string(ref)), valid(ref)
}

// Target implements system.HTTPServer.
func (n *gatewayNode) Target(ref system.Ref) (system.HTTPTarget, error) {
	t, err := n.file(ref)
	if err != nil || n.format == "file" {
		return t, err
	}
	t.Encoded = n.format
	t.URL.RawQuery = "format=" + n.format
	if n.format == "car" {
		// Otherwise the gateway chooses order and repetitions.
		t.URL.RawQuery += "&car-version=1&car-order=dfs&car-dups=n&dag-scope=all"
	}
	return t, nil
}

func (n *gatewayNode) add(ctx context.Context, c *web.Client, size int64, r io.Reader) (system.Ref, error) {
	answer, err := c.Send(ctx, http.MethodPut, n.at(importPath), size, r)
	if err != nil {
		return "", err
	}
	id, err := cid.Decode(strings.TrimSpace(string(answer)))
	if err != nil {
		return "", fmt.Errorf("boxo: import answered %q instead of a CID: %w", answer, err)
	}
	return system.Ref(id.String()), nil
}

// Put implements system.Store.
func (n *gatewayNode) Put(ctx context.Context, _ string, size int64, r io.Reader) (system.Ref, error) {
	return n.add(ctx, n.Client, size, r)
}

// Seed implements system.Seeder: the same import, requested by the server's host.
func (n *gatewayNode) Seed(ctx context.Context, _ string, size int64, r io.Reader) (system.Ref, error) {
	return n.add(ctx, n.local, size, r)
}

// Stats implements system.Stats for the data on disk. The CAR does not count objects, and never
// shrinks.
func (n *gatewayNode) Stats(ctx context.Context) (system.Holdings, error) {
	h, err := disk.Usage(n.dir)
	if err != nil {
		return h, fmt.Errorf("boxo: %w", err)
	}
	return h, ctx.Err()
}

// ready stores the probe: a block that is read from the store through the whole gateway.
func (n *gatewayNode) ready(ctx context.Context) (err error) {
	if n.Probe == "" {
		n.Probe, err = n.add(ctx, n.Client, int64(len(disk.ProbeContent)), bytes.NewReader(disk.ProbeContent))
	}
	if err == nil {
		err = n.Serves(ctx)
	}
	return err
}

// Stop implements group.Node.
func (n *gatewayNode) Stop(ctx context.Context) error {
	n.local.Close()
	return n.Served.Stop(ctx)
}
