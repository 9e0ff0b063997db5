package sia

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Daemon is a process of a private network, with its API.
type Daemon struct {
	member.Process
	API      *API
	Password string // of the API
	Dir      string
	At       []string // as host:port; the first is the API's, the others are those of the program's other listeners
	Store    disk.Dir // storage folder of a host
}

// Connector returns a system's API without contacting the daemon.
type Connector func(base *url.URL, password string, from testbed.Host) *API

// NewDaemon returns a daemon with a password and this number of addresses on the host. It starts no
// process.
func NewDaemon(ctx context.Context, name, program, role string, h testbed.Host, dir string, addresses int,
	connect Connector) (*Daemon, error) {
	ports, err := member.Ports(ctx, h, nil, addresses)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", name, role, err)
	}
	d := &Daemon{Process: member.Process{System: name, Label: program + "/" + role, Host: h}, Password: rand.Text(),
		Dir: dir}
	for _, p := range ports {
		d.At = append(d.At, system.JoinPort(h, p))
	}
	d.API = connect(&url.URL{Scheme: "http", Host: d.At[0]}, d.Password, h)
	return d, nil
}

// MakeStore creates the daemon's storage folder.
func (d *Daemon) MakeStore() error {
	d.Store = disk.Dir{Files: d.Host.Files(), Path: filepath.Join(d.Dir, "store")}
	if err := d.Store.Files.MkdirAll(d.Store.Path, 0o755); err != nil {
		return fmt.Errorf("%s: %w", d.System, err)
	}
	return nil
}

const (
	// StopTime is how long a daemon may take to end after SIGTERM. siad takes 8 to 10 s.
	StopTime = 20 * time.Second
	apiTime  = 60 * time.Second // from the start of the process until its API answers
)

// Launch starts the daemon and waits until its API answers.
func (d *Daemon) Launch(ctx context.Context, c testbed.Command) error {
	c.Dir, c.ReadyTimeout, c.StopTime = d.Dir, apiTime, StopTime
	c.Ready = func(ctx context.Context) error { return d.API.Get(ctx, d.API.Consensus, nil, nil) }
	if err := d.Run(ctx, c); err != nil {
		d.API.Close()
		return fmt.Errorf("%s: %w", d.System, err)
	}
	d.API.alive, _ = member.WhileAlive(context.Background(), d.Processes()...)
	return nil
}

// Stop ends the process and closes its connections.
func (d *Daemon) Stop(ctx context.Context) error {
	d.API.Close()
	return d.Process.Stop(ctx)
}

// Network holds the daemons of a private network. The zero value has none.
type Network struct{ daemons []*Daemon }

// Include adds a daemon, which Stop will end.
func (n *Network) Include(d *Daemon) { n.daemons = append(n.daemons, d) }

// Form calls start, which starts and includes daemons, and then form, which makes a network of them
// and whose context ends when one of them does. If either fails, or both together take longer than
// limit, it ends all daemons.
func (n *Network) Form(ctx context.Context, limit time.Duration, start, form func(context.Context) error) error {
	within, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the network was not ready within %v", limit))
	defer cancel()
	err := start(within)
	if err == nil {
		alive, end := member.WhileAlive(within, n.Processes()...)
		defer end()
		// A daemon that dies may close a connection before its end is noticed.
		if err = form(alive); err != nil && alive.Err() == nil && !timing.Pause(alive, time.Second) {
			err = errors.Join(context.Cause(alive), err)
		}
	}
	if err == nil {
		return nil
	}
	ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), StopTime+5*time.Second)
	defer cancel()
	return errors.Join(err, n.Stop(ctx))
}

// Alive returns an error if a daemon has ended.
func (n *Network) Alive() error {
	for _, d := range n.daemons {
		if err := d.Alive(); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends all daemons.
func (n *Network) Stop(ctx context.Context) error {
	return group.Each(n.daemons, func(_ int, d *Daemon) error { return d.Stop(ctx) })
}

// Processes implements system.Node.
func (n *Network) Processes() (all []testbed.Process) {
	for _, d := range n.daemons {
		all = append(all, d.Process.Processes()...)
	}
	return all
}

// Usage returns what the hosts' storage folders hold, without objects; −1 if this run has started
// no hosts.
func (n *Network) Usage() (system.Holdings, error) {
	var stores []disk.Dir
	for _, d := range n.daemons {
		if d.Store.Path != "" {
			stores = append(stores, d.Store)
		}
	}
	if len(stores) == 0 {
		return system.Holdings{Disk: -1, Entries: -1, Inodes: -1}, nil
	}
	h, err := disk.Usage(stores...)
	h.Objects, h.Absolute = 0, 0
	return h, err
}
