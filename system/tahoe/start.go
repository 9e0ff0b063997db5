package tahoe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// readyTimeout is for daemons that start together on a busy machine: each takes
// about a second of CPU time before it listens.
const readyTimeout = 2 * time.Minute

// grid is the storage nodes, which no client can do without.
type grid struct {
	config
	procs []testbed.Process
	dirs  []disk.Dir // of each storage node
}

// startGrid starts the storage nodes, all at once.
func startGrid(ctx context.Context, d system.Deployment, bin string, c config) (g *grid, err error) {
	g = &grid{config: c, procs: make([]testbed.Process, c.nodes), dirs: make([]disk.Dir, c.nodes)}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.stop(context.WithoutCancel(ctx)))
		}
	}()
	ports, err := storagePorts(ctx, d, c.nodes)
	if err != nil {
		return g, err
	}
	announced := make([]announcement, c.nodes)
	var all errgroup.Group
	for i := range c.nodes {
		g.dirs[i] = storageDir(d, i)
		all.Go(func() error {
			var err error
			g.procs[i], announced[i], err = startStorage(ctx, d.Hosts[0], bin, g.dirs[i], ports[i], c)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return g, err
	}
	for i := range c.clients {
		private := clientDir(d, i).Sub("private")
		if err := private.Files.MkdirAll(private.Path, 0o700); err != nil {
			return g, err
		}
		servers := strings.NewReader(c.serversYAML(announced))
		if err := private.Files.Write(ctx, private.Sub("servers.yaml").Path, 0o600, servers); err != nil {
			return g, err
		}
	}
	return g, nil
}

func storageDir(d system.Deployment, i int) disk.Dir {
	return disk.Of(d, d.Hosts[0], fmt.Sprintf("storage-%d", i+1))
}

// storagePorts are the ports of the storage nodes: those that they have given
// the clients already, when they are started again.
func storagePorts(ctx context.Context, d system.Deployment, n int) ([]int, error) {
	free, err := freePorts(ctx, d.Hosts[0], n)
	if err != nil {
		return nil, err
	}
	for i := range free {
		if port, ok := listened(storageDir(d, i)); ok {
			free[i] = port
		}
	}
	return free, nil
}

// listened is the port that the configuration in a node's directory names.
func listened(dir disk.Dir) (port int, ok bool) {
	b, err := dir.Files.ReadFile(dir.Sub(configFile).Path)
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(b), "tub.port = tcp:")
	digits, _, ok := strings.Cut(rest, ":")
	port, err = strconv.Atoi(digits)
	return port, ok && err == nil
}

func clientDir(d system.Deployment, i int) disk.Dir {
	return disk.Of(d, d.Client, fmt.Sprintf("client-%d", i+1))
}

func startStorage(ctx context.Context, h testbed.Host, bin string, dir disk.Dir, port int, c config) (testbed.Process, announcement, error) {
	label := filepath.Base(dir.Path)
	if err := makeDirectory(ctx, dir, c.storageConfig(label, h.Addr(), port)); err != nil {
		return nil, announcement{}, err
	}
	var a announcement
	address := system.JoinPort(h, port)
	p, err := h.Start(ctx, command(bin, dir.Path, label, func(ctx context.Context) error {
		var err error
		if a, err = announced(dir, address); err != nil {
			return err
		}
		conn, err := h.Dial(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}))
	return p, a, err
}

// startClients starts the client daemons, all at once, and stores the object
// that their health probes ask for. When it fails nothing is left, the storage
// nodes included.
func startClients(ctx context.Context, d system.Deployment, bin string, g *grid) (clients []*started, err error) {
	clients = make([]*started, g.clients)
	defer func() {
		if err == nil {
			return
		}
		stop := context.WithoutCancel(ctx)
		for _, c := range clients {
			if c != nil {
				err = errors.Join(err, c.Stop(stop))
			}
		}
		err = errors.Join(err, g.stop(stop))
	}()
	ports, err := freePorts(ctx, d.Client, g.clients)
	if err != nil {
		return clients, err
	}
	var all errgroup.Group
	for i := range clients {
		all.Go(func() error {
			n, err := startClient(ctx, d, bin, g, i, ports[i])
			if err == nil {
				clients[i] = &started{node: n, first: i == 0}
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return clients, err
	}
	probe, err := clients[0].Put(ctx, "probe", int64(len(probeContent)), strings.NewReader(probeContent))
	for _, c := range clients {
		c.probe = probe
	}
	return clients, err
}

// startClient starts the client daemon i, whose directory has the list of
// servers already, and waits until it reaches them all.
func startClient(ctx context.Context, d system.Deployment, bin string, g *grid, i, port int) (*node, error) {
	dir := clientDir(d, i)
	label := filepath.Base(dir.Path)
	if err := makeDirectory(ctx, dir, g.clientConfig(label, d.Client.Addr(), port)); err != nil {
		return nil, err
	}
	n, err := newNode(name+"/"+label, "http://"+system.JoinPort(d.Client, port), d.Client)
	if err != nil {
		return nil, err
	}
	n.format, n.grid = d.Options["mutable"], g
	n.proc, err = d.Client.Start(ctx, command(bin, dir.Path, label, func(ctx context.Context) error { return n.joined(ctx, g.config) }))
	if err != nil {
		n.client.Close()
		return nil, err
	}
	return n, nil
}

// command runs the node in dir in the foreground; it ends when its standard
// input does, and so with us.
func command(bin, dir, label string, ready func(context.Context) error) testbed.Command {
	return testbed.Command{
		Name: name + "/" + label, Role: "system", Dir: dir,
		Args:  []string{bin, "run", dir},
		Ready: ready, ReadyTimeout: readyTimeout,
	}
}

// freePorts finds n different ones: the kernel may name one twice.
func freePorts(ctx context.Context, h testbed.Host, n int) ([]int, error) {
	var ports []int
	seen := map[int]bool{}
	for tries := 0; len(ports) < n; tries++ {
		p, err := h.Port(ctx, 0)
		if err != nil {
			return nil, err
		}
		if tries > 4*n {
			return nil, fmt.Errorf("host %s names the same ports again and again", h.Name())
		}
		if !seen[p] {
			seen[p] = true
			ports = append(ports, p)
		}
	}
	return ports, nil
}

// died is what became of the storage nodes that have ended by themselves, with
// the last lines of their logs; nil: none has.
func (g *grid) died() error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, p := range g.procs {
		errs = append(errs, ended(p))
	}
	return errors.Join(errs...)
}

func ended(p testbed.Process) error {
	if p == nil {
		return nil
	}
	select {
	case <-p.Done():
		if err := p.Err(); err != nil {
			return err
		}
		return fmt.Errorf("%s has ended; see %s", p.Name(), p.LogPath())
	default:
		return nil
	}
}

func (g *grid) stop(ctx context.Context) error {
	errs := make([]error, len(g.procs))
	var all errgroup.Group
	for i, p := range g.procs {
		if p != nil {
			all.Go(func() error { errs[i] = p.Stop(ctx); return nil })
		}
	}
	_ = all.Wait() // they report by errs
	return errors.Join(errs...)
}

// endpoint is Twisted's description of where to listen, in which a colon ends a
// field.
func endpoint(a netip.Addr, port int) string {
	return fmt.Sprintf("tcp:%d:interface=%s", port, strings.ReplaceAll(a.String(), ":", `\:`))
}

// hint is where a storage node says that it can be reached.
func hint(a netip.Addr, port int) string {
	return "tcp:" + net.JoinHostPort(a.String(), strconv.Itoa(port))
}
