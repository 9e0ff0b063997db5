package tahoe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// readyTimeout is long enough for daemons that start together on a busy machine: each takes about a
// second of CPU time before it listens.
const readyTimeout = 2 * time.Minute

// grid is the storage nodes that the client depends on.
type grid struct {
	config
	procs []testbed.Process
	dirs  []disk.Dir // one for each storage node
}

// startGrid starts all storage nodes concurrently.
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
	if err := group.Each(ports, func(i, port int) (err error) {
		g.dirs[i] = storageDir(d, i)
		g.procs[i], announced[i], err = startStorage(ctx, d.Hosts[0], bin, g.dirs[i], port, c)
		return err
	}); err != nil {
		return g, err
	}
	private := clientDir(d).Sub("private")
	return g, errors.Join(private.Files.MkdirAll(private.Path, 0o700),
		private.Files.Write(ctx, private.Sub("servers.yaml").Path, 0o600, strings.NewReader(c.serversYAML(announced))))
}

func storageDir(d system.Deployment, i int) disk.Dir {
	return disk.Of(d, d.Hosts[0], fmt.Sprintf("storage-%d", i+1))
}

func clientDir(d system.Deployment) disk.Dir { return disk.Of(d, d.Client, "client-1") }

// storagePorts returns the ports of the storage nodes. Restarted nodes keep the ports that the
// clients already know.
func storagePorts(ctx context.Context, d system.Deployment, n int) ([]int, error) {
	free, err := member.Ports(ctx, d.Hosts[0], nil, n)
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

// listened returns the port in the configuration in a node's directory.
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

func startStorage(ctx context.Context, h testbed.Host, bin string, dir disk.Dir, port int, c config) (testbed.Process,
	announcement, error) {
	label := filepath.Base(dir.Path)
	if err := makeDirectory(ctx, dir, c.fill(storageConfig, label, h.Addr(), port)); err != nil {
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

// startClient starts the client daemon, whose directory already has the list of servers, waits
// until it is connected to all of them, and stores the object for health probes. If it fails,
// everything is stopped, including the storage nodes.
func startClient(ctx context.Context, d system.Deployment, bin string, g *grid) (_ *started, err error) {
	stop := g.stop
	defer func() {
		if err != nil {
			err = errors.Join(err, stop(context.WithoutCancel(ctx)))
		}
	}()
	port, err := d.Client.Port(ctx, 0)
	if err != nil {
		return nil, err
	}
	dir := clientDir(d)
	label := filepath.Base(dir.Path)
	if err := makeDirectory(ctx, dir, g.fill(clientConfig, label, d.Client.Addr(), port)); err != nil {
		return nil, err
	}
	s := &started{node: newNode(name+"/"+label, &url.URL{Scheme: "http", Host: system.JoinPort(d.Client, port)}, d.Client)}
	stop = s.Stop
	s.format, s.grid = d.Options["mutable"], g
	if s.proc, err = d.Client.Start(ctx, command(bin, dir.Path, label, func(ctx context.Context) error {
		return s.joined(ctx, g.config)
	})); err != nil {
		return nil, err
	}
	s.probe, err = s.Put(ctx, "probe", int64(len(probeContent)), strings.NewReader(probeContent))
	return s, err
}

// command runs the node in dir in the foreground; it ends when its standard input is closed, so it
// does not outlive this process.
func command(bin, dir, label string, ready func(context.Context) error) testbed.Command {
	return testbed.Command{
		Name: name + "/" + label, Role: "system", Dir: dir,
		Args:  []string{bin, "run", dir},
		Ready: ready, ReadyTimeout: readyTimeout,
	}
}

// died returns an error for the storage nodes that have ended by themselves, with the last lines of
// their logs; nil if all run.
func (g *grid) died() error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, p := range g.procs {
		errs = append(errs, member.Ended(p))
	}
	return errors.Join(errs...)
}

// stop stops the started storage nodes concurrently.
func (g *grid) stop(ctx context.Context) error {
	return group.Each(g.procs, func(_ int, p testbed.Process) error {
		if p == nil {
			return nil
		}
		return p.Stop(ctx)
	})
}

// endpoint returns Twisted's description of a listening address, in which a colon ends a field.
func endpoint(a netip.Addr, port int) string {
	return fmt.Sprintf("tcp:%d:interface=%s", port, strings.ReplaceAll(a.String(), ":", `\:`))
}

// hint returns the address that a storage node advertises.
func hint(a netip.Addr, port int) string {
	return "tcp:" + net.JoinHostPort(a.String(), strconv.Itoa(port))
}
