package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// diskStore makes a directory for a store on a disk of the host.
func (r *run) diskStore(ctx context.Context, h testbed.Host) (scenario.StoreDir, error) {
	if err := ctx.Err(); err != nil {
		return scenario.StoreDir{}, err
	}
	dir, files := filepath.Join(r.scratch, "store-"+rand.Text()), h.Files()
	if err := files.MkdirAll(dir, 0o700); err != nil {
		return scenario.StoreDir{}, fmt.Errorf("engine: directory of a store: %w", err)
	}
	on, err := h.Machine().Filesystem(dir)
	if err != nil {
		return scenario.StoreDir{}, fmt.Errorf("engine: %w", err)
	}
	return scenario.StoreDir{Files: files, Path: dir, On: on.String(),
		Remove: func() error { return files.RemoveAll(dir) }}, nil
}

// ramStore makes one in memory of the host.
func ramStore(ctx context.Context, h testbed.Host, size int64) (scenario.StoreDir, error) {
	if err := ctx.Err(); err != nil {
		return scenario.StoreDir{}, err
	}
	d, err := h.Machine().RAMDisk("store", size)
	if err != nil {
		return scenario.StoreDir{}, fmt.Errorf("engine: %w", err)
	}
	return scenario.StoreDir{Files: h.Files(), Path: d.Path, On: d.On, Remove: d.Remove}, nil
}

// ChainCache is the directory where chains are kept that were made, for all runs of
// this user. It is made by who first writes there.
func ChainCache() (string, error) { return testbed.CacheDir("chains") }

// chainCells are the cells of a plan for which a chain is made and a fresh node started.
func chainCells(plan *experiment.Plan) (all []experiment.Cell) {
	for _, use := range plan.Experiment.Systems {
		if cells := cellsOf(plan, use.Name); follows(cells) {
			all = append(all, cells...)
		}
	}
	return all
}

// storeBytes is about the most that the store of a node takes that has a cell's chain.
func storeBytes(cell experiment.Cell) float64 { return experiment.StoreBytes(cell.Estimate.Bytes) }
