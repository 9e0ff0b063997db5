package deluge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// readyTimeout is for daemons that start together on a busy machine: each takes
// about a second of CPU time before it listens.
const readyTimeout = 2 * time.Minute

// startNode starts the daemon of host i. When it fails nothing is left.
func startNode(ctx context.Context, d system.Deployment, c config, i int, python string, published *published) (*node,
	error) {
	h, label := d.Hosts[i], fmt.Sprintf("node-%d", i+1)
	n := &node{
		config: c, dir: disk.Of(d, h, label), python: python, published: published,
		token: rand.Text(), tasks: map[system.Ref]*task{},
	}
	var err error
	if n.port, err = d.Port(ctx, h); err != nil {
		return nil, err
	}
	if n.Controlled, err = member.NewControlled(ctx, name, h, label, n.port); err != nil {
		return nil, err
	}
	n.Within, n.Header = patient, http.Header{"Authorization": {"Bearer " + n.token}}
	if err := n.start(ctx); err != nil {
		return nil, err
	}
	return n, nil
}

// start runs the daemon until it answers and listens for peers; what is in its
// directory of configuration is overwritten.
func (n *node) start(ctx context.Context) error {
	dir := n.configDir()
	if err := errors.Join(n.dir.Files.MkdirAll(n.dataDir().Path, 0o755), n.write(ctx, dir, n.Host.Addr(), n.port,
		n.Control, n.token)); err != nil {
		return err
	}
	return n.Run(ctx, testbed.Command{
		Dir: n.dir.Path,
		Args: []string{n.python, dir.Sub(launcherFile).Path, dir.Sub(settingsFile).Path, "-d", "-c", dir.Path, "-L",
			"warning"},
		Env:   []string{"PYTHONUNBUFFERED=1"},
		Ready: n.ready, ReadyTimeout: readyTimeout,
	})
}

// ready asks the daemon where it takes peers: when it could not have the port
// that it was to have, it goes on without.
func (n *node) ready(ctx context.Context) error {
	var at struct{ Port, Tied int }
	if err := n.Ask(ctx, http.MethodPost, "/health", []any{}, &at); err != nil {
		return err
	}
	if at.Port != n.port {
		return fmt.Errorf("it listens for peers at port %d instead of %d", at.Port, n.port)
	}
	if at.Tied != 0 {
		return fmt.Errorf("%d of its sockets were tied to a device", at.Tied)
	}
	return nil
}
