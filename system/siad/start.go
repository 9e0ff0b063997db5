package siad

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// daemon is a siad of the private network. Its addresses are host:port.
type daemon struct {
	member.Process
	api     *api
	rpc     string   // where peers connect
	contact string   // where renters reach the host
	store   disk.Dir // the host's storage folder
}

const (
	apiTime  = 60 * time.Second // from process start to an API that answers
	stopTime = 20 * time.Second // 8 to 10 s are usual after SIGTERM
)

// startNetwork starts the daemons and makes a network of them.
func startNetwork(ctx context.Context, d system.Deployment, bin string, p plan) (_ *node, err error) {
	var all []*daemon
	unwatch := func() {}
	defer func() {
		if err == nil {
			return
		}
		unwatch()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime+5*time.Second)
		defer cancel()
		err = errors.Join(err, each(all, func(one *daemon) error {
			one.api.close()
			return one.Stop(stop)
		}))
	}()
	start := func(h testbed.Host, role, modules string) error {
		one, err := startDaemon(ctx, h, launch{bin: bin, role: role, root: filepath.Join(d.DirOf(h), role), modules: modules, alone: true})
		if err == nil {
			all = append(all, one)
		}
		return err
	}
	if err := start(d.Client, "client-1", "gctwrma"); err != nil {
		return nil, err
	}
	n := newNode(all[0].api, d.Options)
	n.data, n.parity = p.data, p.parity
	for i := range p.hosts {
		if err := start(d.Hosts[0], "storage-"+strconv.Itoa(i+1), "gctwh"); err != nil {
			return nil, err
		}
		store := all[i+1].store
		if err := store.Files.MkdirAll(store.Path, 0o755); err != nil {
			return nil, fmt.Errorf("siad: %w", err)
		}
		n.stores = append(n.stores, store)
	}
	var alive context.Context
	alive, unwatch = watch(all...)
	n.unwatch = unwatch
	formed, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(alive, func() { cancel(context.Cause(alive)) })()
	if err := form(formed, n, all[0], all[1:], p); err != nil {
		return nil, err
	}
	for _, one := range all {
		n.procs = append(n.procs, one.Processes()...)
	}
	for _, h := range all[1:] {
		h.api.close()
	}
	return n, nil
}

// watch has the APIs of daemons say, in their errors, that one of them has ended. alive
// ends then.
func watch(all ...*daemon) (alive context.Context, unwatch func()) {
	var processes []testbed.Process
	for _, d := range all {
		processes = append(processes, d.Processes()...)
	}
	alive, unwatch = member.WhileAlive(context.Background(), processes...)
	for _, d := range all {
		d.api.alive = alive
	}
	return alive, unwatch
}

// launch says what to start.
type launch struct {
	bin     string
	role    string // names the process
	root    string // its directory, which is made
	modules string
	rpc     string // where peers connect; empty: any free address
	alone   bool   // it neither looks for peers that its code knows nor for blocks until it is connected
}

// ownNetwork refuses hosts that share this machine's network. siad 1.5.9 ignores
// --upnp=false: it multicasts for a router and has it forward its port.
func ownNetwork(h testbed.Host) error {
	if !h.Addr().IsLoopback() {
		return nil
	}
	return fmt.Errorf("siad: host %s has no network namespace of its own, and siad would ask the router of this machine's network to forward a port "+
		"(1.5.9 ignores --upnp=false): permit network namespaces (`plimsoll doctor` says how), or attach to a running siad", h.Name())
}

func startDaemon(ctx context.Context, h testbed.Host, l launch) (*daemon, error) {
	if err := ownNetwork(h); err != nil {
		return nil, err
	}
	ports, err := member.Ports(ctx, h, nil, 5)
	if err != nil {
		return nil, fmt.Errorf("siad: %s: %w", l.role, err)
	}
	var addresses []string
	for _, p := range ports {
		addresses = append(addresses, system.JoinPort(h, p))
	}
	if l.rpc != "" {
		addresses[1] = l.rpc
	}
	one := &daemon{
		Process: member.Process{System: name, Label: name + "/" + l.role, Host: h},
		rpc:     addresses[1], contact: addresses[2], store: disk.Dir{Files: h.Files(), Path: filepath.Join(l.root, "store")},
	}
	password := rand.Text()
	if one.api, err = connect(&url.URL{Scheme: "http", Host: addresses[0]}, password, h); err != nil {
		return nil, err
	}
	args := []string{
		l.bin, "--upnp=false", "-M", l.modules, "-d", l.root,
		"--api-addr", addresses[0], "--rpc-addr", addresses[1], "--host-addr", addresses[2],
		"--siamux-addr", addresses[3], "--siamux-addr-ws", addresses[4],
		"--disable-api-security", // else it wants the API on loopback; the password stays required
	}
	if l.alone {
		args = append(args, "--no-bootstrap")
	}
	if err := one.Run(ctx, testbed.Command{
		Dir: l.root, Args: args,
		Env:          []string{"SIA_API_PASSWORD=" + password},
		ReadyTimeout: apiTime,
		Ready:        one.api.loaded,
		Stop:         []testbed.StopStep{{Signal: syscall.SIGTERM}, {Signal: syscall.SIGKILL, After: stopTime}},
	}); err != nil {
		one.api.close()
		return nil, fmt.Errorf("siad: %w", err)
	}
	return one, nil
}

// loaded asks a module. The API answers before the modules are there, which it
// gets all at once, and says 490 to their calls until then.
func (a *api) loaded(ctx context.Context) error { return a.Get(ctx, "/consensus", nil, nil) }
