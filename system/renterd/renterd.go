// Package renterd stores objects on Sia hosts through renterd: a running one, or one that it starts
// in a private network with hostd hosts and a private chain.
package renterd

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"strconv"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

const name = "renterd"

//go:embed info.yaml
var description string

// System implements system.System.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

var _ system.Healther = (*node)(nil)

// Check implements system.System.
func (s System) Check(ctx context.Context, opt system.Options) []system.Problem {
	return sia.Check(ctx, s.Info(), opt, planOf, func() error {
		_, _, err := programs(opt)
		return err
	})
}

// Start implements system.System. renterd runs on the client's host and the storage hosts on the
// server's, all on a private chain.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt := d.Options
	p, err := planOf(opt)
	if err != nil {
		return nil, err
	}
	renter, host, err := programs(opt)
	if err != nil {
		return nil, err
	}
	identity := map[string]string{
		"binary": renter, hostd: host, "currency": "SC", "sector": strconv.Itoa(sia.Sector), "bucket": opt["bucket"],
		"hosts": strconv.FormatInt(p.Hosts, 10), "blocks": "one every " + blockTime.String(),
	}
	n, err := startNetwork(ctx, d, renter, host, p, identity)
	return group.One(identity, n, err)
}

// Attach implements system.System.
func (s System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	return sia.Attach(ctx, name, d, planOf, connect, func(a *sia.API, p sia.Plan,
		identity map[string]string) (group.Node, error) {
		n := newNode(a, d.Options)
		n.Write, n.Mark = d.Write, d.Mark()
		if p.Data > 0 {
			n.asked = url.Values{"minshards": {strconv.FormatInt(p.Data, 10)},
				"totalshards": {strconv.FormatInt(p.Total, 10)}}
			n.minimum, n.total = p.Data, p.Total
		}
		identity["bucket"], identity["prefix"] = n.bucket, n.Prefix
		return n, n.attach(ctx, d.Options["packing"], identity)
	})
}

// planOf returns the plan of the private network to start, and the redundancy of uploads.
func planOf(opt system.Options) (sia.Plan, error) {
	minimum, total, err := sia.BothOrNone(name, opt, "min_shards", "total_shards")
	if err != nil {
		return sia.Plan{}, err
	}
	if total < minimum {
		return sia.Plan{}, fmt.Errorf("renterd: options `min_shards` and `total_shards` are %d and %d: wanted "+
			"1 ≤ min ≤ total ≤ 255", minimum, total)
	}
	return sia.PlanOf(name, opt, minimum, total, sia.Sector)
}

// programs returns the paths of both programs.
func programs(opt system.Options) (renter, host string, err error) {
	if renter, err = system.Program(name, opt, "binary", "PLIMSOLL_RENTERD", name); err != nil {
		return "", "", err
	}
	host, err = system.Program(hostd, system.Options{system.ImageName: opt["hostd_image"], hostd: opt[hostd]}, hostd,
		"PLIMSOLL_HOSTD", hostd)
	return renter, host, err
}
