// Package tahoe stores objects in a Tahoe-LAFS grid: storage nodes and a client started by
// Plimsoll, or an attached client of a running grid, through its web API.
package tahoe

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/install"
	"github.com/plimsoll-project/plimsoll/system/internal/disk"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/listed"
	"github.com/plimsoll-project/plimsoll/system/internal/web"
	"github.com/plimsoll-project/plimsoll/testbed"
)

const name = "tahoe"

//go:embed info.yaml
var description string

// System implements system.System.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

var (
	_ system.Healther   = (*node)(nil)
	_ system.Endpointer = (*node)(nil)
	_ system.Provider   = (*node)(nil)
)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	if opt["url"] != "" {
		u, _, err := attached(opt)
		if err != nil {
			return system.WrongOptions(name, err)
		}
		return web.Unreachable(ctx, name, []string{web.HostPort(u)})
	}
	if _, err := parseConfig(opt); err != nil {
		return system.WrongOptions(name, err)
	}
	_, _, err := versions(ctx, opt)
	return s.Info().Missing(err)
}

// Start implements system.Starter: all storage nodes run on the first host, behind one link, and
// the client on the host where requests come from.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	c, err := parseConfig(opt)
	if err != nil {
		return nil, err
	}
	if d.Hosts[0].Addr().Is6() && c.protocol == "gbs" {
		return nil, errors.New("tahoe: Tahoe-LAFS 1.20 speaks HTTPS to storage nodes over IPv4 only: say `protocol: " +
			"foolscap`, or give the hosts IPv4 addresses")
	}
	bin, libraries, err := versions(ctx, opt)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	identity := map[string]string{
		// the client has verified it before it is ready
		"version": "tahoe-lafs " + libraries["tahoe-lafs"], "binary": bin, "protocol": c.protocol,
		"nodes":   strconv.Itoa(c.nodes),
		"shares":  fmt.Sprintf("%d of %d, on %d different nodes", c.needed, c.total, c.happy),
		"mutable": opt["mutable"], "connections": "kept by the clients to the storage nodes",
		"convergence": "a secret of the client's own", "introducer": "none",
	}
	delete(libraries, "tahoe-lafs")
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(libraries)) {
		parts = append(parts, k+" "+libraries[k])
	}
	identity["libraries"] = strings.Join(parts, ", ")
	n := &started{node: newNode(name+"/"+clientLabel, &url.URL{Scheme: "http"}, d.Client), config: c,
		procs: make([]testbed.Process, c.nodes), dirs: make([]disk.Dir, c.nodes)}
	n.format = opt["mutable"]
	if err := n.start(ctx, d, bin); err != nil {
		return nil, errors.Join(err, n.Stop(context.WithoutCancel(ctx)))
	}
	return group.One(identity, n, nil)
}

// versions returns tahoe's path, and the versions of the libraries that affect measurements.
func versions(ctx context.Context, opt system.Options) (bin string, found map[string]string, err error) {
	bin, _, found, err = install.Versions(ctx, name, opt, "PLIMSOLL_TAHOE", "tahoe-lafs", "Twisted", "foolscap", "zfec",
		"cryptography")
	return bin, found, err
}

// Attach implements system.Attacher.
func (s System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	u, entries, err := attached(opt)
	if err != nil {
		return nil, err
	}
	if !d.Write && len(entries) == 0 {
		return nil, errors.New("tahoe: nothing to read: give read caps in option \"caps\", or `allow: [write]` in " +
			"the experiment file")
	}
	n := newNode(name, u, d.Client)
	n.format, n.readOnly, n.entries = opt["mutable"], !d.Write, entries
	all, err := n.servers(ctx)
	if err != nil {
		n.client.Close()
		return nil, err
	}
	have, protocols := connected(all)
	identity := map[string]string{
		"version": "tahoe-lafs (its web API does not tell the version)", "endpoint": u.Host,
		"nodes":    fmt.Sprintf("%d of %d known are connected", have, len(all)),
		"protocol": strings.Join(slices.Sorted(maps.Keys(protocols)), ", "), "mutable": opt["mutable"],
		"connections": "kept by the client to the storage nodes",
	}
	return group.One(identity, n, nil)
}

// attached returns the URL of an attached client, and the objects that its grid already has.
func attached(opt system.Options) (u *url.URL, all []listed.Entry, err error) {
	u, err = web.ParseServer(name, "url", opt["url"], "http://127.0.0.1:3456")
	if err != nil || opt["caps"] == "" {
		return u, nil, err
	}
	all, err = listed.Parse(strings.NewReader(opt["caps"]), "option \"caps\"", "cap")
	if err != nil {
		return u, nil, fmt.Errorf("tahoe: %w", err)
	}
	for i, e := range all {
		c, err := parseCap(system.Ref(e.What))
		if err != nil {
			return u, nil, err
		}
		if e.Size < 0 {
			all[i].Size = c.size
		}
	}
	return u, all, nil
}
