package codex

import (
	"context"
	"errors"
	"net/url"
	"os/exec"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/pair"
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
	return pair.Check(ctx, s, opt, func() error {
		bin, err := program(opt)
		if err != nil {
			return err
		}
		_, err = speaks(ctx, bin)
		return err
	}, "url", "server_url")
}

// Attach implements system.System.
func (s System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.Info().Fill(d.Options)
	if err != nil {
		return nil, err
	}
	n, err := newNode(opt)
	if err != nil {
		return nil, err
	}
	identity := map[string]string{
		"put": "import into the node at the endpoint", "get": "network/stream",
		"requests": "one connection to the node at the endpoint for each; the nodes keep theirs among each other",
	}
	err = n.Attach(ctx, opt, d.Write, func(ctx context.Context, u *url.URL) (*api, error) {
		a, i, err := connect(ctx, d.Client.Dial, u)
		if err == nil && identity["version"] == "" {
			identity["version"], identity["dialect"], identity["endpoint"] = i.version(), a.dialect.String(), u.Host
		}
		return a, err
	})
	if err != nil {
		return nil, err
	}
	var one group.Node = n
	if n.Two() {
		identity["seed"] = "import into the node at " + n.Far().base.Host
		one = seeding{n}
	}
	return group.Start(ctx, 1, identity, func(context.Context, int) (group.Node, error) { return one, nil })
}

// program finds a node's program; others, too, are called storage.
func program(opt system.Options) (string, error) {
	programs := []string{"codex", "storage"}
	if bin, err := system.Named(name, opt, "binary", "PLIMSOLL_CODEX", programs...); bin != "" || err != nil {
		return bin, err
	}
	if bin, err := system.Installed(name, programs...); bin != "" || err != nil {
		return bin, err
	}
	for _, try := range programs {
		path, err := exec.LookPath(try)
		if err != nil {
			continue
		}
		if _, err := speaks(context.Background(), path); err == nil {
			return path, nil
		}
	}
	return "", errors.New("codex: not found in PATH: codex, storage")
}
