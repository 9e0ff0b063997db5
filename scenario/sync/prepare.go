package sync

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
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
		site: site, cluster: site.Cluster.(system.Chains), nodes: nodes.Take(site),
		chains: map[system.ChainSpec]system.Chain{}, replays: map[string]*system.Replayed{},
	}
	for _, c := range cells {
		if err := r.makeChain(ctx, c.Sync); err != nil {
			return nil, err
		}
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

// makeChain makes the chain of a cell, unless it exists.
func (r *runner) makeChain(ctx context.Context, s *experiment.Sync) error {
	spec := chainSpec(s, r.site.Seed)
	if _, there := r.chains[spec]; there {
		return nil
	}
	begun := time.Now()
	chain, err := r.cluster.Chain(ctx, spec, r.say)
	if err != nil {
		return r.unfit(fmt.Sprintf("make a chain of %d blocks", s.Blocks), err)
	}
	r.chains[spec] = chain
	r.tell("phase", "chain ready", fmt.Sprintf("%d blocks, %d transactions, %s", chain.Height, chain.Transactions,
		words.Bytes(float64(chain.Bytes))), time.Since(begun))
	return nil
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
