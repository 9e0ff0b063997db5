// Package siad stores objects on Sia hosts through a siad of the v1.5 line: a running one, or the
// renter of a private network that it starts with a miner and hosts.
package siad

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
	"github.com/plimsoll-project/plimsoll/system/internal/sia"
)

const name = "siad"

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
		_, err := buildOf(ctx, opt)
		return err
	})
}

// Start implements system.System. Renter and miner run on the client's host and the storage hosts
// on the server's, all in a private network.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	b, err := buildOf(ctx, d.Options)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, s.Info().Install)
	}
	if d.Follow {
		return startChains(ctx, d, b)
	}
	p, err := planOf(d.Options)
	if err != nil {
		return nil, err
	}
	identity := map[string]string{"binary": b.path, "network": "private", "sector": strconv.Itoa(sia.DevSector),
		"hosts": strconv.FormatInt(p.Hosts, 10), "mining": "until ready"}
	n, err := startNetwork(ctx, d, b.path, p, identity)
	return group.One(identity, n, err)
}

// Attach implements system.System.
func (s System) Attach(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	return sia.Attach(ctx, name, d, planOf, connect, func(a *sia.API, p sia.Plan,
		identity map[string]string) (group.Node, error) {
		n := newNode(a, d.Options, p)
		n.Write, n.Mark = d.Write, d.Mark()
		return n, n.attach(ctx, identity)
	})
}

const folderUnit = 16 << 20 // 64 sectors of the dev constants

// planOf returns the plan of the private network to start.
func planOf(opt system.Options) (sia.Plan, error) {
	data, parity, err := sia.BothOrNone(name, opt, "data_pieces", "parity_pieces")
	if err != nil {
		return sia.Plan{}, err
	}
	return sia.PlanOf(name, opt, data, data+parity, folderUnit)
}
