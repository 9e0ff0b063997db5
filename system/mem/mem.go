// Package mem is a storage system in memory whose times are known: an operation
// on an object of size bytes takes
//
//	t = A + R·RTT + B·size,
//
// and fails as often as is asked for. It is
// the truth that the tests of the engine, of scenario overhead and of the fits
// compare their results with. It has every ability of a node that needs no
// server, and neither processes nor sockets, so that it runs in the virtual time
// of testing/synctest.
//
// Its nodes are a swarm, too, in which content spreads as a fluid: see [Links].
//
// It is not in package all: it measures nothing, and a list of systems that
// users choose from is no place for it.
package mem

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
)

//go:embed info.yaml
var description string

// System implements system.System.
type System struct{}

// Info implements system.System.
func (System) Info() system.Info { return system.Describe(description) }

var (
	_ system.Healther = (*Node)(nil)
	_ system.Seeder   = (*Node)(nil)
	_ system.Namer    = (*Node)(nil)
)

// ErrInjected is the failure of an operation that option errors asked for.
var ErrInjected = errors.New("an error that was asked for")

// Check implements system.System: nothing can be missing.
func (System) Check(context.Context, system.Options) []system.Problem { return nil }

// Start implements system.System. It uses no hosts.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.Info().Fill(d.Options)
	if err != nil {
		return nil, err
	}
	m, err := model(opt)
	if err != nil {
		return nil, err
	}
	var nodes, seed int64
	swarm := &swarm{began: time.Now(), objects: map[system.Ref]*object{}}
	if err := read(opt, map[string]any{"nodes": &nodes, "seed": &seed, "up": &swarm.up, "down": &swarm.down,
		"pass": &swarm.pass}); err != nil {
		return nil, err
	}
	identity := maps.Clone(map[string]string(opt))
	identity["version"], identity["currency"] = "1", "MEM"
	store := newStore(m, uint64(seed))
	store.swarm = swarm
	return group.Start(ctx, int(nodes), identity, func(_ context.Context, i int) (group.Node, error) {
		address := fmt.Sprintf("mem:%d", i+1)
		return &Node{store: store, address: address, near: map[system.Ref]bool{}, peer: store.swarm.add(address)}, nil
	})
}
