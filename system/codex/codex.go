package codex

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
)

// System implements system.System.
type System struct{}

var (
	_ system.System     = System{}
	_ system.Healther   = (*node)(nil)
	_ system.Endpointer = (*node)(nil)
	_ system.Deleter    = (*node)(nil)
	_ system.Lister     = (*node)(nil)
	_ system.Stater     = (*node)(nil)
	_ system.Stats      = (*node)(nil)
	_ system.Connector  = (*node)(nil)
	_ system.Seeder     = pair{}
	_ system.Cooler     = pair{}
)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	if opt["url"] == "" {
		bin, err := program(opt)
		if err == nil {
			_, err = speaks(ctx, bin)
		}
		if err != nil {
			return []system.Problem{{What: err.Error(), Hint: s.Info().Install}}
		}
		return nil
	}
	near, far, err := endpoints(opt)
	if err != nil {
		return system.WrongOptions("codex", err)
	}
	at := []string{web.HostPort(near)}
	if far != nil {
		at = append(at, web.HostPort(far))
	}
	return web.Unreachable(ctx, name, at)
}

// Attach implements system.System.
func (s System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.Info().Fill(d.Options)
	if err != nil {
		return nil, err
	}
	nearURL, farURL, err := endpoints(opt)
	if err != nil {
		return nil, err
	}
	n, err := newNode(opt)
	if err != nil {
		return nil, err
	}
	n.attached, n.write = true, d.Write
	var i info
	if n.near, i, err = connect(ctx, d.Client.Dial, nearURL); err != nil {
		return nil, err
	}
	identity := map[string]string{
		"version": i.version(), "dialect": n.near.dialect.String(), "endpoint": nearURL.Host,
		"put": "import into the node at the endpoint", "get": "network/stream",
		"requests": "one connection to the node at the endpoint for each; the nodes keep theirs among each other",
	}
	var one group.Node = n
	if farURL != nil {
		if n.far, _, err = connect(ctx, d.Client.Dial, farURL); err != nil {
			n.near.web.Close()
			return nil, err
		}
		identity["seed"] = "import into the node at " + farURL.Host
		one = pair{n}
	}
	return group.Start(ctx, 1, identity, func(context.Context, int) (group.Node, error) { return one, nil })
}

// newNode is a node with the limits of opt, not connected yet.
func newNode(opt system.Options) (*node, error) {
	n := &node{ours: map[system.Ref]object{}}
	var err, err2 error
	n.notFoundAfter, err = opt.Duration("not_found_after")
	n.stallAfter, err2 = opt.Duration("stall_after")
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("codex: %w", err)
	}
	return n, nil
}

// endpoints are the options url and server_url; far is nil when there is none.
func endpoints(opt system.Options) (near, far *url.URL, err error) {
	if near, err = endpoint(opt, "url"); err != nil {
		return nil, nil, err
	}
	if opt["server_url"] != "" {
		far, err = endpoint(opt, "server_url")
	}
	return near, far, err
}

func endpoint(opt system.Options, key string) (*url.URL, error) {
	return web.Base(name, key, opt[key], "http://127.0.0.1:8080")
}

// program finds a node's program; others, too, are called storage.
func program(opt system.Options) (string, error) {
	if bin, err := system.Named(name, opt, "binary", "PLIMSOLL_CODEX"); bin != "" || err != nil {
		return bin, err
	}
	for _, try := range []string{"codex", "storage"} {
		path, err := exec.LookPath(try)
		if err != nil {
			continue
		}
		if _, err := speaks(context.Background(), path); err == nil {
			return path, nil
		}
	}
	return "", errors.New("codex: neither a Codex nor a Logos Storage node in PATH")
}
