package tahoe

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const clientLabel = "client-1"

// readyTimeout is long enough for daemons that start together on a busy machine: each takes about a
// second of CPU time before it listens.
const readyTimeout = 2 * time.Minute

// startServers starts all storage nodes concurrently, and gives the client in dir the list of them.
func (s *started) startServers(ctx context.Context, d system.Deployment, bin string, client disk.Dir) error {
	ports, err := member.Ports(ctx, d.Hosts[0], nil, s.nodes)
	if err != nil {
		return err
	}
	announced := make([]announcement, s.nodes)
	if err := group.Each(ports, func(i, port int) (err error) {
		s.dirs[i] = disk.Of(d, d.Hosts[0], fmt.Sprintf("storage-%d", i+1))
		s.procs[i], announced[i], err = startStorage(ctx, d.Hosts[0], bin, s.dirs[i], port, s.config)
		return err
	}); err != nil {
		return err
	}
	private := client.Sub("private")
	return errors.Join(private.Files.MkdirAll(private.Path, 0o700),
		private.Files.Write(ctx, private.Sub("servers.yaml").Path, 0o600, strings.NewReader(s.serversYAML(announced))))
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

// start starts the grid and the client, waits until the client is connected to all storage nodes, and
// stores the object for health probes.
func (s *started) start(ctx context.Context, d system.Deployment, bin string) error {
	dir := disk.Of(d, d.Client, clientLabel)
	if err := s.startServers(ctx, d, bin, dir); err != nil {
		return err
	}
	port, err := d.Client.Port(ctx, 0)
	if err != nil {
		return err
	}
	s.base.Host = system.JoinPort(d.Client, port)
	if err = makeDirectory(ctx, dir, s.fill(clientConfig, clientLabel, d.Client.Addr(), port)); err != nil {
		return err
	}
	if s.proc, err = d.Client.Start(ctx, command(bin, dir.Path, clientLabel, func(ctx context.Context) error {
		return s.joined(ctx, s.config)
	})); err != nil {
		return err
	}
	s.alive, _ = member.WhileAlive(context.Background(), s.Processes()...)
	s.probe, err = s.Put(ctx, "probe", int64(len(probeContent)), strings.NewReader(probeContent))
	return err
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

// stop stops processes concurrently, except those that were not started.
func stop(ctx context.Context, all ...testbed.Process) error {
	return group.Each(all, func(_ int, p testbed.Process) error {
		if p == nil {
			return nil
		}
		return p.Stop(ctx)
	})
}
