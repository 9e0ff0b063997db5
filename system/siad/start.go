package siad

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/patience"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// daemon is a siad of the private network. Its addresses are host:port.
type daemon struct {
	api     *api
	proc    testbed.Process
	rpc     string   // where peers connect
	contact string   // where renters reach the host
	store   disk.Dir // the host's storage folder
}

const (
	apiTime  = 60 * time.Second // from process start to an API that answers
	stopTime = 20 * time.Second // 8 to 10 s are usual after SIGTERM
)

// startNetwork starts the daemons and makes a network of them.
func startNetwork(ctx context.Context, d system.Deployment, bin string, p plan) (*node, error) {
	var all []*daemon
	fail := func(err error) (*node, error) {
		for _, one := range all {
			one.api.close()
		}
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime+5*time.Second)
		defer cancel()
		return nil, errors.Join(err, stopAll(stop, all))
	}
	start := func(h testbed.Host, role, modules string) (*daemon, error) {
		return startDaemon(ctx, h, launch{bin: bin, role: role, root: filepath.Join(d.DirOf(h), role), modules: modules, alone: true})
	}
	renter, err := start(d.Client, "client-1", "gctwrma")
	if err != nil {
		return nil, err
	}
	all = append(all, renter)
	for i := range p.hosts {
		h, err := start(d.Hosts[0], "storage-"+strconv.Itoa(i+1), "gctwh")
		if err != nil {
			return fail(err)
		}
		all = append(all, h)
		if err := h.store.Files.MkdirAll(h.store.Path, 0o755); err != nil {
			return fail(fmt.Errorf("siad: %w", err))
		}
	}
	n := newNode(renter.api, d.Options)
	n.data, n.parity = p.data, p.parity
	for _, one := range all {
		n.procs = append(n.procs, one.proc)
	}
	var alive context.Context
	alive, n.unwatch = patience.Watch(n.procs...)
	for _, one := range all {
		one.api.alive = alive
	}
	formed, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(alive, func() { cancel(context.Cause(alive)) })()
	if err := form(formed, n, renter, all[1:], p); err != nil {
		n.unwatch()
		return fail(err)
	}
	for _, h := range all[1:] {
		n.stores = append(n.stores, h.store)
		h.api.close()
	}
	return n, nil
}

func stopAll(ctx context.Context, all []*daemon) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, one := range all {
		if one.proc != nil {
			wg.Go(func() { errs[i] = one.proc.Stop(ctx) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
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
	addresses, err := freeAddresses(ctx, h, 5)
	if err != nil {
		return nil, fmt.Errorf("siad: %s: %w", l.role, err)
	}
	if l.rpc != "" {
		addresses[1] = l.rpc
	}
	one := &daemon{rpc: addresses[1], contact: addresses[2], store: disk.Dir{Files: h.Files(), Path: filepath.Join(l.root, "store")}}
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
	one.proc, err = h.Start(ctx, testbed.Command{
		Name: name + "/" + l.role, Role: "system", Dir: l.root, Args: args,
		Env:          []string{"SIA_API_PASSWORD=" + password},
		ReadyTimeout: apiTime,
		Ready:        one.api.loaded,
		Stop:         []testbed.StopStep{{Signal: syscall.SIGTERM}, {Signal: syscall.SIGKILL, After: stopTime}},
	})
	if err != nil {
		one.api.close()
		return nil, fmt.Errorf("siad: %w", err)
	}
	return one, nil
}

// loaded asks a module. The API answers before the modules are there, which it
// gets all at once, and says 490 to their calls until then.
func (a *api) loaded(ctx context.Context) error { return a.Get(ctx, "/consensus", nil, nil) }

// freeAddresses are n different ones of h on which nothing listens.
func freeAddresses(ctx context.Context, h testbed.Host, n int) ([]string, error) {
	seen := map[string]bool{}
	var out []string
	for range 10 * n {
		port, err := h.FreePort(ctx)
		if err != nil {
			return nil, err
		}
		a := system.JoinPort(h, port)
		if !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
		if len(out) == n {
			return out, nil
		}
	}
	return nil, fmt.Errorf("found %d of %d free ports", len(out), n)
}
