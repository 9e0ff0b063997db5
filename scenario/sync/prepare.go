package sync

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// runner is one prepared deployment with its chains. Peers run from trial to trial.
type runner struct {
	site    scenario.Site
	cluster system.Chains
	nodes   []*nodes.Node
	chains  map[system.ChainSpec]system.Chain
	replays map[string]*system.Replayed // by replayKey; nil: left out
}

// Prepare implements Scenario: it makes the chains. Ready replays them cell by cell.
func (Scenario) Prepare(ctx context.Context, site scenario.Site, cells []experiment.Cell) (scenario.Runner, error) {
	r := &runner{
		site: site, cluster: site.Cluster.(system.Chains), nodes: nodes.NodesOf(site),
		chains: map[system.ChainSpec]system.Chain{}, replays: map[string]*system.Replayed{},
	}
	for _, c := range cells {
		spec := chainSpec(c.Sync, site.Seed)
		if _, there := r.chains[spec]; there {
			continue
		}
		begun := time.Now()
		chain, err := r.cluster.Chain(ctx, spec, r.say)
		if err != nil {
			return nil, r.unfit(fmt.Sprintf("make a chain of %d blocks", spec.Blocks), err)
		}
		r.chains[spec] = chain
		r.tell("phase", "chain ready", fmt.Sprintf("%d blocks, %d transactions, %s", chain.Height, chain.Transactions,
			words.Bytes(float64(chain.Bytes))), time.Since(begun))
	}
	return r, nil
}

// settingsOf returns the options of a cell's nodes.
func (r *runner) settingsOf(s *experiment.Sync) system.Options {
	opt := system.Options{}
	maps.Copy(opt, r.site.Use.With)
	maps.Copy(opt, s.Options)
	return opt
}

func (r *runner) say(text string) {
	r.site.Say(r.site.Use.Name + ": " + text)
}

func (r *runner) tell(kind, what, detail string, took time.Duration) {
	r.site.Event(kind, what, r.site.Use.Name+": "+detail, took)
}

// unfit returns why a step that a cell requires failed. If the system refuses an option, it is
// unfit; such errors name the option (see system.Options).
func (r *runner) unfit(what string, err error) error {
	if strings.Contains(err.Error(), `option "`) {
		return scenario.Unfit(r.site.Use.Name, system.Problem{What: fmt.Sprintf("%s: %v", what, err), Hint: "change the " +
			"option, or its values in sync.vary; `plimsoll systems " + r.site.Use.Name + "` lists what there is"})
	}
	return fmt.Errorf("%s: %s: %w", r.site.Use.Name, what, err)
}

// store creates the directory of a fresh node's store. The error is a SkipError if there is not
// enough memory for it.
func (r *runner) store(ctx context.Context, chain system.Chain, storage string) (scenario.StoreDir, error) {
	if storage != "ram" {
		return r.site.Store(ctx, 0)
	}
	size := experiment.RAMDiskBytes(float64(chain.Disk))
	dir, err := r.site.Store(ctx, int64(size))
	if err != nil && ctx.Err() == nil {
		err = &scenario.SkipError{Why: fmt.Sprintf("sync.storage: ram: no RAM disk of %s for the store: %v",
			words.Bytes(float64(size)), err)}
	}
	return dir, err
}

// A replay shorter than soon is repeated soonReplays times, and the median counts.
const (
	soon        = 2 * time.Second
	soonReplays = 3
)

// replayedWith returns the options that affect a cell's replay.
func (r *runner) replayedWith(s *experiment.Sync) system.Options {
	opt := r.settingsOf(s)
	maps.DeleteFunc(opt, func(name, _ string) bool { return slices.Contains(s.Network, name) })
	return opt
}

// replayKey returns a key that is the same for cells with the same replay.
func (r *runner) replayKey(s *experiment.Sync) string {
	return fmt.Sprintf("%s in %s with %q", r.chains[chainSpec(s, r.site.Seed)].ID, s.Storage, r.replayedWith(s))
}

// Ready implements Readier: it replays the chain of a cell (validates it locally), unless it did
// so before for this cell or one with the same replay.
func (r *runner) Ready(ctx context.Context, c experiment.Cell) error {
	if !c.Sync.Replay {
		return nil
	}
	key := r.replayKey(c.Sync)
	if _, tried := r.replays[key]; tried {
		return nil
	}
	one, err := r.replay(ctx, c)
	if err == nil {
		r.replays[key] = one
	}
	return err
}

// replay replays the chain of a cell, and returns the median of several replays if they are
// short. It returns nil if the store does not fit into memory (the cell's trials are left out,
// too), or if the system has no replay.
func (r *runner) replay(ctx context.Context, c experiment.Cell) (*system.Replayed, error) {
	if _, ok := r.cluster.(system.Replayer); !ok {
		r.tell("note", "replay left out", r.site.Use.Name+" cannot validate a chain without a network", 0)
		return nil, nil
	}
	s := c.Sync
	chain := r.chains[chainSpec(s, r.site.Seed)]
	with := "in " + s.Storage
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		if !slices.Contains(s.Network, name) {
			with += fmt.Sprintf(", %s=%q", name, s.Options[name])
		}
	}
	r.say(fmt.Sprintf("replaying %d blocks from a local file (%s)", chain.Height, with))
	var seconds, cpu []float64
	for range soonReplays {
		one, err := r.replayOnce(ctx, chain, s)
		var skip *scenario.SkipError
		switch {
		case errors.As(err, &skip):
			r.tell("note", "replay left out", skip.Why, 0)
			return nil, nil
		case err != nil:
			return nil, r.unfit("replay the chain", err)
		case one.Blocks < chain.Height:
			return nil, fmt.Errorf("%s: a replay of %d blocks came to %d: %w", r.site.Use.Name, chain.Height,
				one.Blocks, system.ErrAnswer)
		}
		seconds, cpu = append(seconds, one.Seconds), append(cpu, one.CPU)
		if one.Seconds >= soon.Seconds() {
			break
		}
	}
	median := &system.Replayed{Seconds: stats.Median(seconds), CPU: stats.Median(cpu), Blocks: chain.Height}
	r.tell("phase", "chain replayed", fmt.Sprintf("%d blocks %s: %.4g s, %.4g s of CPU, median of %d (%.4g to %.4g s)",
		chain.Height, with, median.Seconds, median.CPU, len(seconds), slices.Min(seconds), slices.Max(seconds)),
		time.Duration(median.Seconds*float64(time.Second)))
	return median, nil
}

// replayOnce replays a chain into a store, and removes the store.
func (r *runner) replayOnce(ctx context.Context, chain system.Chain, s *experiment.Sync) (out system.Replayed,
	err error) {
	store, err := r.store(ctx, chain, s.Storage)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, store.Remove()) }()
	return r.cluster.(system.Replayer).Replay(ctx, system.FollowTask{Chain: chain, Dir: store.Path,
		Settings: r.replayedWith(s)})
}
