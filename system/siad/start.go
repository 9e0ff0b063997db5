package siad

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/member"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// daemon is a siad of the private network. Its addresses are host:port.
type daemon struct {
	sia.Daemon
	api     *api
	rpc     string // where peers connect
	contact string // where renters reach the host
	folder  string // of a host's storage
}

const apiTime = 60 * time.Second // from process start to an API that answers

// startNetwork starts the daemons and makes a network of them.
func startNetwork(ctx context.Context, d system.Deployment, bin string, p plan) (_ *node, err error) {
	var network sia.Network
	defer func() {
		if err != nil {
			err = network.Abandon(ctx, err)
		}
	}()
	start := func(h testbed.Host, role, modules string) (*daemon, error) {
		one, err := startDaemon(ctx, h, launch{bin: bin, role: role, root: filepath.Join(d.DirOf(h), role),
			modules: modules, alone: true})
		if err == nil {
			network.Add(&one.Daemon)
		}
		return one, err
	}
	renter, err := start(d.Client, "client-1", "gctwrma")
	if err != nil {
		return nil, err
	}
	n := newNode(renter.api, d.Options)
	n.data, n.parity, n.network = p.data, p.parity, &network
	var hosts []*daemon
	for i := range p.hosts {
		h, err := start(d.Hosts[0], "storage-"+strconv.Itoa(i+1), "gctwh")
		if err != nil {
			return nil, err
		}
		h.Store = disk.Dir{Files: h.Host.Files(), Path: h.folder}
		if err := h.Store.Files.MkdirAll(h.Store.Path, 0o755); err != nil {
			return nil, fmt.Errorf("siad: %w", err)
		}
		hosts = append(hosts, h)
	}
	return n, network.Form(ctx, func(ctx context.Context) error { return form(ctx, n, renter, hosts, p) })
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

// ownNetwork refuses hosts that share this machine's network.
func ownNetwork(hosts ...testbed.Host) error {
	return sia.OwnNetwork(name, "siad would ask the router of this machine's network to forward a port (1.5.9 "+
		"ignores --upnp=false)", hosts...)
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
		Daemon: sia.Daemon{Process: member.Process{System: name, Label: name + "/" + l.role, Host: h}},
		rpc:    addresses[1], contact: addresses[2], folder: filepath.Join(l.root, "store"),
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
	one.API = one.api.API
	return one, one.Launch(ctx, testbed.Command{
		Dir: l.root, Args: args,
		Env:          []string{"SIA_API_PASSWORD=" + password},
		ReadyTimeout: apiTime,
		Ready:        one.api.loaded,
		Stop:         []testbed.StopStep{{Signal: syscall.SIGTERM}, {Signal: syscall.SIGKILL, After: sia.StopTime}},
	})
}

// loaded asks a module. The API answers before the modules are there, which it
// gets all at once, and says 490 to their calls until then.
func (a *api) loaded(ctx context.Context) error { return a.Get(ctx, "/consensus", nil, nil) }
