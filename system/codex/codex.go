package codex

import (
	"context"
	"errors"
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
	_ system.Seeder     = seeding{}
	_ system.Cooler     = seeding{}
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
	near, i, err := connect(ctx, d.Client.Dial, nearURL)
	if err != nil {
		return nil, err
	}
	n.Attach(d.Write, near)
	identity := map[string]string{
		"version": i.version(), "dialect": near.dialect.String(), "endpoint": nearURL.Host,
		"put": "import into the node at the endpoint", "get": "network/stream",
		"requests": "one connection to the node at the endpoint for each; the nodes keep theirs among each other",
	}
	var one group.Node = n
	if farURL != nil {
		far, _, err := connect(ctx, d.Client.Dial, farURL)
		if err != nil {
			near.web.Close()
			return nil, err
		}
		n.Attach(d.Write, near, far)
		identity["seed"] = "import into the node at " + farURL.Host
		one = seeding{n}
	}
	return group.Start(ctx, 1, identity, func(context.Context, int) (group.Node, error) { return one, nil })
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
