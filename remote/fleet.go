package remote

import (
	"context"
	"encoding/gob"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/agent"
)

// fleet provides the engine's hosts. The client's host is the engine's machine; the next machines
// have the other load generators, and those after them one host of each system, because only one
// system is loaded at a time. Machines beyond the number that the plan needs are spares for lost
// ones; without a spare, the fleet waits for the lost machine.
type fleet struct {
	machines    []Machine // by index, including replacements
	credentials agent.Credentials
	ctx         context.Context // ends with the run
	place       map[string]int  // by host: index of its machine
	say         *recorder

	mu      sync.Mutex
	spare   int           // index of the first unused machine
	reached []*agent.Host // by machine: its first host; for the engine's machine, the agent beside the engine
}

const (
	// aliveEvery is the interval at which agents are asked whether they are alive.
	aliveEvery = 10 * time.Second
	// returnTime is how long a lost machine may take to come back or to be replaced by its place,
	// if there is no spare.
	returnTime = 2 * time.Minute
)

func newFleet(ctx context.Context, o order, plan *experiment.Plan, say *recorder) *fleet {
	f := &fleet{
		machines: o.Machines, credentials: o.Credentials, ctx: ctx, place: map[string]int{}, say: say,
		spare: engine.MachinesFor(plan, o.Config.Clients), reached: make([]*agent.Host, len(o.Machines)),
	}
	for i, name := range engine.GeneratorHosts(o.Config.Clients) {
		f.place[name] = 1 + i
	}
	for _, hosts := range engine.HostsOf(plan) {
		for i, name := range hosts {
			f.place[name] = max(1, o.Config.Clients) + i
		}
	}
	return f
}

// where describes the machines, for the environment of the record.
func (f *fleet) where() map[string]string {
	all := map[string]string{}
	for i, m := range f.machines {
		at := ""
		if i > 0 {
			at = "@" + m.Name
		}
		for key, v := range map[string]string{"name": m.Name, "node": m.Node, "zone": m.Zone} {
			if v != "" {
				all["machine."+key+at] = v
			}
		}
	}
	return all
}

// stay keeps the agent beside the engine alive, although it has no work: its pod or directory
// exists only as long as the agent.
func (f *fleet) stay(ctx context.Context) (err error) {
	f.reached[0], err = agent.Reach(ctx, f.options(0, f.machines[0].Name))
	return err
}

func (f *fleet) options(i int, host string) agent.Options {
	m := f.machines[i]
	addr := m.Addr
	if m.Number > 0 {
		addr = testbed.MeshAddr(m.Number)
	}
	return agent.Options{
		Name: host, On: m.Name, Addr: addr, Credentials: f.credentials, Alive: aliveEvery,
		Dial: func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{Timeout: aliveEvery}).DialContext(ctx, "tcp", m.Agent.String())
		},
	}
}

// host implements testbed.Hosts.
func (f *fleet) host(ctx context.Context, t *testbed.Testbed, name string) (testbed.Host, error) {
	i, ok := f.place[name]
	if first := f.machines[0]; !ok { // the client
		return t.MeshHost(name, first.Number, first.Addr)
	}
	if i >= len(f.machines) {
		return nil, fmt.Errorf("host %s needs a machine of its own, and there are %d", name, len(f.machines))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	patience := time.Duration(0)
	if r := f.reached[i]; r != nil && r.Lost() != nil {
		if f.spare < len(f.machines) {
			for other, at := range f.place { // including the hosts of other systems, which use it later
				if at == i {
					f.place[other] = f.spare
				}
			}
			r.Close()
			go fence(f.ctx, f.options(i, name))
			i = f.spare
			f.spare++
		} else { // a pod whose agent was killed starts another one
			f.reached[i], patience = nil, returnTime
			r.Close()
			f.say.event(event{Event: engine.Event{Kind: kindLost}})
		}
	}
	if r := f.reached[i]; r != nil {
		return r.Beside(name), nil
	}
	h, err := reach(ctx, patience, time.Second, func() agent.Options {
		f.renew()
		opt := f.options(i, name)
		opt.Bed = t
		return opt
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.machines[i].Name, err)
	}
	f.reached[i] = h
	return h, nil
}

// reach connects to an agent, and retries at an interval within a time limit.
func reach(ctx context.Context, within, every time.Duration, options func() agent.Options) (*agent.Host, error) {
	for deadline := time.Now().Add(within); ; timing.Pause(ctx, every) {
		h, err := agent.Reach(ctx, options())
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return h, err
		}
	}
}

// fence ends the processes of a lost machine that comes back too late, because another machine has
// replaced it. An agent that cannot be reached ends them by itself.
func fence(ctx context.Context, opt agent.Options) {
	again := func() agent.Options { return opt }
	if h, err := reach(ctx, agent.DefaultOrphaned, aliveEvery, again); err == nil {
		h.Close()
	}
}

// renew reads from the launcher's file which machines have replaced others.
func (f *fleet) renew() {
	file, err := os.Open(filepath.Join(f.say.dir, machinesFile))
	if err != nil {
		return
	}
	defer file.Close()
	var all []Machine
	if gob.NewDecoder(file).Decode(&all) != nil || len(all) != len(f.machines) {
		return
	}
	for i, m := range all {
		if i > 0 && m.Addr.IsValid() {
			f.machines[i] = m
		}
	}
}

func (f *fleet) close() {
	for _, h := range f.reached {
		if h != nil {
			h.Close()
		}
	}
}
