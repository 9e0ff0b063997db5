package boxo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/ipfs/go-cid"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// daemon is one process, and the ways to its gateway.
type daemon struct {
	web.Reader             // from the client
	local      *web.Client // from the host to itself
	address    string
	format     string
	dir        string // what it keeps
	proc       *testbed.Process
}

// prepare finds a place for a daemon on h and the ways there, port being one of h.
func prepare(d system.Deployment, h testbed.Host, port int, label string) (*daemon, error) {
	n := &daemon{address: system.JoinPort(h, port), format: d.Options["format"], dir: filepath.Join(d.Dir, label)}
	var err error
	if n.Reader, err = web.NewReader(name, d.Client.Dial, n.at("/"), n.file); err != nil {
		return nil, err
	}
	if n.local, err = web.New(name, h.Dial, n.at("/")); err != nil {
		return nil, err
	}
	return n, os.MkdirAll(n.dir, 0o755)
}

// run starts the daemon and waits until it is ready.
func (n *daemon) run(ctx context.Context, d system.Deployment, h testbed.Host, label string, ready func(context.Context) error, more ...string) error {
	args := []string{"--listen", n.address, "--store", filepath.Join(n.dir, "blocks.car")}
	for _, k := range []string{"chunk", "raw_leaves", "cid_version", "retrieval_timeout", "max_requests"} {
		args = append(args, "--"+k+"="+d.Options[k])
	}
	cmd, err := d.Node(name, append(args, more...)...)
	if err != nil {
		return err
	}
	n.proc, err = h.Start(ctx, testbed.Command{Name: label, Role: "system", Args: cmd, Dir: n.dir, Ready: ready})
	return err
}

// alive says whether the process has not ended.
func (n *daemon) alive() error {
	if n.proc == nil {
		return nil
	}
	select {
	case <-n.proc.Done():
		return fmt.Errorf("boxo: the process %s has ended (%v); see %s", n.proc.Name(), n.proc.Err(), n.proc.LogPath())
	default:
		return nil
	}
}

func (n *daemon) at(path string) system.HTTPTarget {
	return system.HTTPTarget{URL: &url.URL{Scheme: "http", Host: n.address, Path: path}}
}

// file is the target of the object's own bytes, whatever the option format says.
func (n *daemon) file(ref system.Ref) (system.HTTPTarget, error) {
	if _, err := cid.Decode(string(ref)); err != nil {
		return system.HTTPTarget{}, fmt.Errorf("boxo: %q is not a CID (%w): %w", ref, err, system.ErrBadRef)
	}
	return n.at("/ipfs/" + string(ref)), nil
}

func (n *daemon) add(ctx context.Context, c *web.Client, size int64, r io.Reader) (system.Ref, error) {
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

// holdings is what the daemon keeps on disk. The CAR tells no objects, and
// what is written to it once stays.
func (n *daemon) holdings(ctx context.Context) (system.Holdings, error) {
	h, err := disk.Usage(n.dir)
	if err != nil {
		return h, fmt.Errorf("boxo: %w", err)
	}
	return h, ctx.Err()
}

// stop ends the process; it may be called again, and on a daemon that never ran.
func (n *daemon) stop(ctx context.Context) error {
	if n == nil {
		return nil
	}
	n.Client.Close()
	n.local.Close()
	if n.proc == nil {
		return nil
	}
	return n.proc.Stop(ctx)
}
