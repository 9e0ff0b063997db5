package sia

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// Daemon is a process of a private network, with its API.
type Daemon struct {
	member.Process
	API   *API
	Store disk.Dir // a host's storage folder
}

// StopTime is what a daemon has to end in after SIGTERM; siad takes 8 to 10 s.
const StopTime = 20 * time.Second

// Launch starts the daemon and waits until its API answers.
func (d *Daemon) Launch(ctx context.Context, c testbed.Command) error {
	if err := d.Run(ctx, c); err != nil {
		d.API.Close()
		return fmt.Errorf("%s: %w", d.System, err)
	}
	return nil
}

// Network is the daemons of a private network; the zero value has none.
type Network struct {
	daemons []*Daemon
	unwatch context.CancelFunc
}

// Add takes over a daemon that was started.
func (n *Network) Add(d *Daemon) { n.daemons = append(n.daemons, d) }

// Watch has the APIs of all daemons say, in their errors, that one of them has ended.
// alive ends then.
func (n *Network) Watch() (alive context.Context) {
	alive, n.unwatch = member.WhileAlive(context.Background(), n.Processes()...)
	for _, d := range n.daemons {
		d.API.alive = alive
	}
	return alive
}

// Form watches the daemons and calls form, whose context ends when one of them does.
func (n *Network) Form(ctx context.Context, form func(context.Context) error) error {
	alive := n.Watch()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(alive, func() { cancel(context.Cause(alive)) })()
	return form(ctx)
}

// Alive is an error when a daemon has ended.
func (n *Network) Alive() error {
	for _, d := range n.daemons {
		if err := d.Alive(); err != nil {
			return err
		}
	}
	return nil
}

// Abandon ends a network that did not form, for err.
func (n *Network) Abandon(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTime+5*time.Second)
	defer cancel()
	return errors.Join(err, n.Stop(ctx))
}

// Stop ends all daemons.
func (n *Network) Stop(ctx context.Context) error {
	if n.unwatch != nil {
		n.unwatch()
	}
	return Each(n.daemons, func(d *Daemon) error {
		d.API.Close()
		return d.Process.Stop(ctx)
	})
}

// Processes implements system.Node.
func (n *Network) Processes() (all []testbed.Process) {
	for _, d := range n.daemons {
		all = append(all, d.Process.Processes()...)
	}
	return all
}

// Usage is what the hosts' storage folders hold, objects aside; −1 where there are none of ours.
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

// Each does something with all at once; the error is the first.
func Each[T any](all []T, do func(T) error) error {
	var g errgroup.Group
	for _, one := range all {
		g.Go(func() error { return do(one) })
	}
	return g.Wait()
}

// OwnNetwork refuses a host that shares the network of its machine, this one or another, where a daemon would do
// what outside says.
func OwnNetwork(name, outside string, hosts ...testbed.Host) error {
	for _, h := range hosts {
		if !testbed.Emulated(h.Addr()) {
			return fmt.Errorf("%s: host %s has no network namespace of its own, and %s: run it on this machine alone, "+
				"permit network namespaces (`plimsoll doctor` says how), or attach to a running node", name, h.Name(),
				outside)
		}
	}
	return nil
}
