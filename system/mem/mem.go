// Package mem is a storage system in memory with known timing: an operation on an object of size
// bytes takes
//
//	t = A + R·RTT + B·size,
//
// and operations fail at a given rate. Tests of the engine, of scenario overhead and of the fits
// compare their results with these known values. It has every ability of a node that needs no
// server, and neither processes nor sockets, so that it runs in the virtual time of
// testing/synctest.
//
// Its nodes also form a swarm, in which content spreads as a fluid: see [Links].
//
// It is not in package all, the list of systems for users, because it measures nothing.
package mem

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
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

// ErrInjected is the failure of an operation that option errors requested.
var ErrInjected = errors.New("an error that was asked for")

// Check implements system.System: nothing can be missing.
func (System) Check(context.Context, system.Options) []system.Problem { return nil }

// Start implements system.Starter. It uses no hosts.
func (s System) Start(ctx context.Context, d system.Deployment) (system.Cluster, error) {
	opt, err := s.Info().Fill(d.Options)
	if err != nil {
		return nil, err
	}
	m, err := model(opt)
	if err != nil {
		return nil, err
	}
	identity := maps.Clone(map[string]string(opt))
	identity["version"], identity["currency"] = "1", "MEM"
	shared := &store{
		model: m, faults: rand.New(rand.NewPCG(uint64(opt.Int("seed")), 2)), objects: map[system.Ref]*object{},
		swarm: swarm{began: time.Now(), up: opt.Int("up"), down: opt.Int("down"), pass: opt.Bool("pass"),
			contents: map[system.Ref]*object{}},
	}
	return group.Start(ctx, int(opt.Int("nodes")), 1, identity, func(_ context.Context, i int) (group.Node, error) {
		n := &client{store: shared, near: map[system.Ref]bool{}, peer: peer{
			place: i, address: fmt.Sprintf("mem:%d", i+1), known: map[string]bool{}, tasks: map[system.Ref]*spread{},
		}}
		shared.peers = append(shared.peers, &n.peer)
		return &Node{client: n}, nil
	})
}

// Model is the duration of operations and their rate of failure. [Node.Change] changes it while the
// system runs.
type Model struct {
	A       time.Duration
	R, Dial float64 // round trips; Dial is added for an operation that finds no idle connection
	Rate    int64   // bytes per second; 0: no limit
	RTT     time.Duration
	Settle  time.Duration
	Cache   bool
	// Expansion is the number of bytes that servers store per byte of an object.
	Expansion float64
	// Fractions of operations, 0 to 1, that fail, that hang until their context ends, that flip one
	// bit, or that end early. The last two return no error.
	Errors, Hangs, Corrupt, Truncate float64
	Warm                             bool // Cool fails with ErrWarm
}

// distance returns the duration of an operation's round trips.
func (m Model) distance() time.Duration { return time.Duration((m.R + m.Dial) * float64(m.RTT)) }

// transfer returns the duration of the transfer of that many bytes.
func (m Model) transfer(bytes int64) time.Duration {
	if m.Rate == 0 {
		return 0
	}
	return time.Duration(float64(bytes) / float64(m.Rate) * float64(time.Second))
}

// model returns the model for opt, whose defaults are filled in.
func model(opt system.Options) (Model, error) {
	m := Model{A: opt.Duration("a"), Rate: opt.Int("rate"), RTT: opt.Duration("rtt"), Settle: opt.Duration("settle"),
		Cache: opt.Bool("cache")}
	for name, value := range map[string]*float64{
		"r": &m.R, "dial": &m.Dial, "expansion": &m.Expansion, "errors": &m.Errors,
	} {
		var err error
		if *value, err = strconv.ParseFloat(opt[name], 64); err != nil {
			return m, fmt.Errorf("mem: option %q: %w", name, err)
		}
	}
	return m, nil
}
