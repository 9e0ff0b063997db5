package mem

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
)

// System implements system.System.
type System struct{}

var (
	_ system.Healther = (*Node)(nil)
	_ system.Seeder   = (*Node)(nil)
	_ system.Namer    = (*Node)(nil)
	_ system.Walker   = (*Node)(nil)
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
	nodes, err := opt.Int("nodes")
	if err != nil || nodes < 1 || nodes > 1000 {
		return nil, fmt.Errorf("mem: option \"nodes\" is from 1 to 1000, not %q", opt["nodes"])
	}
	seed, err := opt.Int("seed")
	if err != nil {
		return nil, fmt.Errorf("mem: %w", err)
	}
	identity := maps.Clone(map[string]string(opt))
	identity["version"], identity["currency"] = "1", "MEM"
	store := newStore(m, uint64(seed))
	if store.swarm, err = newSwarm(opt); err != nil {
		return nil, err
	}
	return group.Start(ctx, int(nodes), identity, func(_ context.Context, i int) (group.Node, error) {
		address := fmt.Sprintf("mem:%d", i+1)
		return &Node{store: store, address: address, near: map[system.Ref]bool{}, peer: store.swarm.add(address)}, nil
	})
}
