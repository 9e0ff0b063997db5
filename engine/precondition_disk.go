package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// recordingRoom is the space, in bytes, that the run directory needs besides the data.
const recordingRoom = 256 << 20

// checkDisk compares the free space with the data sets of all systems, with room for a second
// copy while a system imports. The data of a load test in a system that can be revived is in
// the run directory.
func checkDisk(_ context.Context, cfg Config, _ nodePlace) []Problem {
	var need, kept float64 = recordingRoom, recordingRoom
	systems := cfg.Plan.Experiment.Systems
	if cfg.Machines > 0 {
		systems = nil // their disks are elsewhere
	}
	for _, use := range systems {
		cells := cfg.Plan.CellsOf(use.Name)
		_, bytes := cfg.Scenario.Prepares(cells)
		switch {
		case cfg.Plan.Experiment.Disseminate != nil: // one system at a time; its data is removed after each trial
			need = max(need, recordingRoom+largest(cells, func(c experiment.Cell) float64 {
				return float64(c.Disseminate.Nodes) * float64(c.Data.Size)
			}))
		case cfg.Plan.Experiment.Sync != nil:
			// For a fresh node and for a replay. Peers serve from the cache of chains.
			need += largest(cells, func(c experiment.Cell) float64 { return 2 * storeBytes(c) })
		case !cfg.continues():
			need += 2 * float64(bytes)
		case use.Attached():
			// Its disks are elsewhere.
		default:
			set := redundancy(use) * largest(cells, func(c experiment.Cell) float64 { // each begins with a fresh deployment
				_, bytes := cfg.Scenario.Prepares([]experiment.Cell{c})
				return float64(bytes)
			})
			if cfg.revives(use) {
				kept += set
			} else {
				need += set
			}
		}
	}
	problems := tooFull(os.TempDir(), need, "free some space, set TMPDIR to a larger disk, or store less: "+
		"data.size, data.objects, sync.blocks, sync.transactions")
	if kept > recordingRoom && !cfg.Resume {
		dir := cmp.Or(cfg.Dir, ".") // doctor: where a run would be
		problems = append(problems, tooFull(dir, kept, "free some space, give --out on a larger disk, or "+
			"store less")...)
	}
	return problems
}

// storeBytes returns roughly the largest size of a node's store with the chain of a cell.
func storeBytes(cell experiment.Cell) float64 { return experiment.StoreBytes(cell.Estimate.Bytes) }

// redundancy returns how many bytes a started system stores per byte, by its options.
func redundancy(use experiment.SystemUse) float64 {
	needed, err1 := strconv.ParseFloat(use.With["needed"], 64)
	total, err2 := strconv.ParseFloat(use.With["total"], 64)
	if err1 != nil || err2 != nil || needed <= 0 || total < needed {
		return 1
	}
	return total / needed
}

// largest returns the most bytes that one of the cells takes.
func largest(cells []experiment.Cell, takes func(experiment.Cell) float64) (most float64) {
	for _, c := range cells {
		most = max(most, takes(c))
	}
	return most
}

func tooFull(dir string, need float64, hint string) []Problem {
	on, err := testbed.Here().Filesystem(dir)
	if err != nil {
		return []Problem{{What: fmt.Sprintf("the free space is not known: %v", err)}}
	}
	if !(on.Free < need) {
		return nil
	}
	return []Problem{refuse(fmt.Sprintf("%s has %s free, the run's data needs up to %s", dir,
		words.Bytes(on.Free), words.Bytes(need)), hint)}
}

// checkData opens every file of the data sets on this machine, so that an unreadable one is
// not discovered after a week.
func checkData(ctx context.Context, cfg Config, _ nodePlace) (all []Problem) {
	seen := map[string]bool{}
	for _, c := range cfg.Plan.Cells {
		if c.Data.Known() || seen[c.Data.Key()] {
			continue
		}
		seen[c.Data.Key()] = true
		hint := ""
		set, err := scenario.DataSet(ctx, c.Data, cfg.Plan.Experiment.Seed, cfg.Base)
		if err != nil {
			// Where a relative path starts is worth saying of one that is not there.
			if path := c.Data.Directory + c.Data.Trace; errors.Is(err, fs.ErrNotExist) && !filepath.IsAbs(path) {
				hint = "relative paths start at " + cfg.Base + ", the directory of the experiment file"
			}
			all = append(all, refuse(err.Error(), hint))
			continue
		}
		for i := range set.Len() / max(1, c.Data.Copies) { // copies are read from the same files
			f, err := set.Open(i)
			if err != nil {
				all = append(all, refuse("a file of the data set cannot be read: "+err.Error(),
					"make all files readable, or say skip: [data-readable] to store the others"))
			}
			if err != nil || ctx.Err() != nil {
				break
			}
			f.Close()
		}
	}
	return all
}
