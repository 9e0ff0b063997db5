package deluge

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/selfsigned"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// readyTimeout is for daemons that start together on a busy machine: each takes
// about a second of CPU time before it listens.
const readyTimeout = 2 * time.Minute

const user = "plimsoll"

// startNode starts the daemon of host i. When it fails nothing is left.
func startNode(ctx context.Context, d system.Deployment, c config, i int, python, torrents string) (*node, error) {
	h := d.Hosts[i]
	n := &node{
		config: c, host: h, label: fmt.Sprintf("%s/node-%d", name, i+1), dir: filepath.Join(d.Dir, fmt.Sprintf("node-%d", i+1)),
		python: python, torrents: torrents, password: rand.Text(), tasks: map[system.Ref]*task{},
	}
	var err error
	if n.port, err = d.Port(ctx, h); err != nil {
		return nil, err
	}
	for n.rpc = n.port; n.rpc == n.port; { // the kernel may name one twice
		if n.rpc, err = h.FreePort(ctx); err != nil {
			return nil, err
		}
	}
	pair, err := n.certificate()
	if err != nil {
		return nil, err
	}
	address := system.JoinPort(h, n.rpc)
	n.client = newClient(func(ctx context.Context) (net.Conn, error) { return h.Dial(ctx, "tcp", address) }, pair, user, n.password)
	if err := n.start(ctx); err != nil {
		return nil, err
	}
	return n, nil
}

// certificate makes what the daemon's RPC server proves itself by, which saves it
// the making of an RSA key. It is kept when the rest of the directory goes.
func (n *node) certificate() (*tls.Config, error) {
	dir := filepath.Join(n.dir, "certificate")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	files, err := selfsigned.Write(dir, n.host.Addr())
	if err != nil {
		return nil, err
	}
	root, err := os.ReadFile(files.CA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(root) {
		return nil, fmt.Errorf("no certificate in %s", files.CA)
	}
	n.cert, n.key = files.Cert, files.Key
	return &tls.Config{RootCAs: pool, ServerName: n.host.Addr().String(), MinVersion: tls.VersionTLS12}, nil
}

// configure writes the daemon's directory; what is there already is overwritten.
func (n *node) configure() error {
	ssl := filepath.Join(n.configDir(), "ssl")
	if err := errors.Join(os.MkdirAll(ssl, 0o700), os.MkdirAll(n.dataDir(), 0o755)); err != nil {
		return err
	}
	for from, to := range map[string]string{n.cert: "daemon.cert", n.key: "daemon.pkey"} {
		b, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(ssl, to), b, 0o600); err != nil {
			return err
		}
	}
	return n.write(n.configDir(), n.host.Addr(), n.port, user, n.password)
}

// start runs the daemon until it answers and listens for peers.
func (n *node) start(ctx context.Context) error {
	if err := n.configure(); err != nil {
		return err
	}
	dir := n.configDir()
	p, err := n.host.Start(ctx, testbed.Command{
		Name: n.label, Role: "system", Dir: n.dir,
		Args: []string{
			n.python, filepath.Join(dir, launcherFile), filepath.Join(dir, settingsFile),
			"-d", "-c", dir, "-u", n.host.Addr().String(), "-p", strconv.Itoa(n.rpc), "-L", "warning",
		},
		Env:   []string{"PYTHONUNBUFFERED=1"},
		Ready: n.listens, ReadyTimeout: readyTimeout,
	})
	if err != nil {
		n.client.Close()
		return err
	}
	n.mu.Lock()
	n.proc = p
	n.mu.Unlock()
	return nil
}

// listens asks the daemon where it takes peers: when it could not have the port
// that it was told to, it goes on without.
func (n *node) listens(ctx context.Context) error {
	v, err := n.client.call(ctx, "core.plimsoll_listens")
	if err != nil {
		return err
	}
	l, ok := v.([]any)
	if !ok || len(l) != 2 {
		return fmt.Errorf("it says of its sockets %v: %w", v, system.ErrAnswer)
	}
	if l[0] != int64(n.port) {
		return fmt.Errorf("it listens for peers at port %v instead of %d", l[0], n.port)
	}
	if l[1] != int64(0) {
		return fmt.Errorf("%v of its sockets were tied to a device", l[1])
	}
	return nil
}
