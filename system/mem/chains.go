package mem

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/system/internal/group"
)

// chains is a cluster of nodes that follow a chain of blocks. A block has no
// content, only a number; what a node takes for it, and what each of its settings
// multiplies that by, is given.
//
// Nothing runs: the state is brought up to the present whenever it is looked at.
type chains struct {
	system.Cluster
	opt   system.Options // filled in
	seed  uint64
	began time.Time

	mu    sync.Mutex
	made  map[system.ChainSpec]bool
	nodes []*Follower
	links Links
	times int // noise was drawn so often
}

func startChains(ctx context.Context, opt system.Options, nodes int, seed uint64, identity map[string]string) (system.Cluster, error) {
	c := &chains{opt: opt, seed: seed, began: time.Now(), made: map[system.ChainSpec]bool{}}
	if _, err := c.model(nil); err != nil {
		return nil, err
	}
	var err error
	c.Cluster, err = group.Start(ctx, nodes, identity, func(_ context.Context, i int) (group.Node, error) {
		n := &Follower{cluster: c, place: i, address: fmt.Sprintf("mem:%d", i+1)}
		c.nodes = append(c.nodes, n)
		return n, nil
	})
	return c, err
}

// chainModel is what a node takes, by its options.
type chainModel struct {
	validate, index float64 // seconds, the factors in them
	noise, spread   float64
	timeout, rtt    float64 // seconds
	up, down        float64 // bytes per second; 0: no limit
	block, batch    int64
}

// model is that of the cluster with other settings.
func (c *chains) model(settings system.Options) (chainModel, error) {
	all := maps.Clone(c.opt)
	maps.Copy(all, settings)
	all, err := System{}.Info().Fill(all)
	if err != nil {
		return chainModel{}, err
	}
	r := reader{opt: all}
	factor, high := 1.0, 0
	for i := range 2 {
		m := r.number(fmt.Sprintf("m%d", i+1), 1e6)
		if all[fmt.Sprintf("f%d", i+1)] == "high" {
			factor *= m
			high++
		}
	}
	if m := r.number("m12", 1e6); high == 2 {
		factor *= m
	}
	m := chainModel{
		validate: factor * r.duration("validate").Seconds(), index: factor * r.duration("index").Seconds(),
		noise: r.number("noise", 10), spread: r.number("spread", 10), timeout: r.duration("timeout").Seconds(), rtt: r.duration("rtt").Seconds(),
		up: float64(r.count("up")), down: float64(r.count("down")), block: r.count("block"), batch: r.count("batch"),
	}
	for name, few := range map[string]bool{"block": m.block < 1, "batch": m.batch < 1, "timeout": m.timeout == 0} {
		if few {
			r.note(name, errors.New("it is 0"))
		}
	}
	return m, r.err
}

// draw is a stream of noise of its own, the next one. The lock is the caller's.
func (c *chains) draw() *rand.Rand {
	c.times++
	return rand.New(rand.NewPCG(c.seed, uint64(c.times)))
}

// now is in seconds since the cluster began.
func (c *chains) now() float64 { return time.Since(c.began).Seconds() }

// advance brings all nodes up to the present. The lock is the caller's.
func (c *chains) advance() {
	for _, n := range c.nodes {
		if n.run != nil {
			n.run.advance(c.now())
		}
	}
}

// identity of a block: of the last one it is the chain's tip.
func blockID(chain string, height int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", chain, height))
	return hex.EncodeToString(sum[:8])
}

// Chain implements system.Chains. It takes no time; what was made is kept as long
// as the cluster lives.
func (c *chains) Chain(ctx context.Context, spec system.ChainSpec, say func(string)) (system.Chain, error) {
	if err := ctx.Err(); err != nil {
		return system.Chain{}, fmt.Errorf("mem: make a chain: %w", err)
	}
	if spec.Blocks < 1 || spec.Transactions < 0 {
		return system.Chain{}, fmt.Errorf("mem: make a chain: %d blocks of %d transactions", spec.Blocks, spec.Transactions)
	}
	m, err := c.model(nil)
	if err != nil {
		return system.Chain{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	built := !c.made[spec]
	c.made[spec] = true
	if built {
		say(fmt.Sprintf("chain: %d of %d blocks", spec.Blocks, spec.Blocks))
	}
	id, height := fmt.Sprintf("%+v", spec), int64(spec.Blocks)
	return system.Chain{
		ID: id, Tip: blockID(id, height), Height: height, Bytes: height * m.block,
		Transactions: height * int64(spec.Transactions), Disk: 2 * height * m.block, Built: built,
	}, nil
}

// Replay implements system.Replayer: it takes the time of all blocks, with noise.
func (c *chains) Replay(ctx context.Context, task system.FollowTask) (system.Replayed, error) {
	m, err := c.model(task.Settings)
	if err != nil {
		return system.Replayed{}, err
	}
	c.mu.Lock()
	noise := math.Exp(m.noise * c.draw().NormFloat64())
	c.mu.Unlock()
	began := time.Now()
	took := noise * (m.validate + m.index) * float64(task.Chain.Height)
	if err := wait(ctx, began.Add(time.Duration(took*float64(time.Second)))); err != nil {
		return system.Replayed{}, fmt.Errorf("mem: replay: %w", err)
	}
	return system.Replayed{Seconds: max(took, 1e-9), CPU: took, Blocks: task.Chain.Height}, nil
}
