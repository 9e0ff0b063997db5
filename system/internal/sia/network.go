package sia

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
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

// Endpoint returns the API that options `url` and `password` name: its address and the content of
// the environment variable.
func Endpoint(name string, opt system.Options) (base *url.URL, password string, err error) {
	base, err = url.Parse(opt["url"])
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" ||
		base.User != nil || strings.Trim(base.Path, "/") == "api" {
		return nil, "", fmt.Errorf("%s: option \"url\": %q is not the URL of a renter, such as http://127.0.0.1:9980",
			name, opt["url"])
	}
	password, set := os.LookupEnv(opt["password"])
	if !set {
		return nil, "", fmt.Errorf("%s: option \"password\": the environment variable %s is not set", name,
			opt["password"])
	}
	return base, password, nil
}

// BothOrNone returns the values of two options that must both be given, each at least 1, or both be
// omitted. It returns 0, 0 if they are omitted.
func BothOrNone(name string, opt system.Options, first, second string) (a, b int64, err error) {
	a, b = opt.Int(first), opt.Int(second)
	if (a == 0) != (b == 0) {
		return 0, 0, fmt.Errorf("%s: options `%s` and `%s` are %d and %d: give both, each at least 1, or none", name,
			first, second, a, b)
	}
	return a, b, nil
}

// Plan describes a private network to start.
type Plan struct {
	Hosts, HostSize int64
	Data, Total     int64 // pieces that rebuild a part of an object, and all its pieces
}

// PlanOf returns the plan of options `hosts` and `host_size`, which must be a multiple of unit.
// data and total are the requested pieces; 0 means one, and one on each host. For a running renter,
// the plan has only the pieces.
func PlanOf(name string, opt system.Options, data, total, unit int64) (Plan, error) {
	p := Plan{Data: data, Total: total}
	if opt["url"] != "" {
		return p, nil
	}
	p.Hosts, p.HostSize = opt.Int("hosts"), opt.Int("host_size")
	if data == 0 {
		p.Data, p.Total = 1, p.Hosts
	}
	switch {
	case p.Total > p.Hosts:
		return p, fmt.Errorf("%s: %d pieces need as many hosts, there are %d: %w", name, p.Total, p.Hosts, system.ErrTooFew)
	case p.HostSize%unit != 0:
		return p, fmt.Errorf("%s: option \"host_size\": %d is not a multiple of %d MiB", name, p.HostSize, unit>>20)
	}
	return p, nil
}

// Check returns the problems with the plan and with the programs to start or, if option `url` is
// given, with reaching that renter.
func Check(ctx context.Context, i system.Info, opt system.Options, plan func(system.Options) (Plan, error),
	programs func() error) []system.Problem {
	var base *url.URL
	_, err := plan(opt)
	if err == nil && opt["url"] != "" {
		base, _, err = Endpoint(i.Name, opt)
	}
	switch {
	case err != nil:
		return system.WrongOptions(i.Name, err)
	case base != nil:
		return web.Unreachable(ctx, i.Name, []string{web.HostPort(base)})
	}
	return i.Missing(programs())
}

// Attach connects to the renter that the options name. node checks it and fills in its identity.
func Attach(ctx context.Context, name string, d system.Deployment, plan func(system.Options) (Plan, error),
	connect Connector, node func(a *API, p Plan, identity map[string]string) (group.Node, error),
) (system.Cluster, error) {
	p, err := plan(d.Options)
	if err != nil {
		return nil, err
	}
	base, password, err := Endpoint(name, d.Options)
	if err != nil {
		return nil, err
	}
	a := connect(base, password, d.Client)
	identity := map[string]string{"endpoint": base.Host, "currency": "SC", "sector": strconv.Itoa(Sector)}
	n, err := node(a, p, identity)
	if err != nil {
		a.Close()
	}
	return group.One(identity, n, err)
}
