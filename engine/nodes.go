package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// nodesOf returns how many nodes a cell has, each on its own host behind its own access
// link: those of a swarm, or the fresh node, which is the first, and its peers. 0: the
// system has one host.
func nodesOf(cell experiment.Cell) int {
	switch {
	case cell.Disseminate != nil:
		return cell.Disseminate.Nodes
	case cell.Sync != nil:
		return 1 + cell.Sync.Peers
	}
	return 0
}

// nodes returns the number of nodes of the largest of these cells of one system.
func nodes(cells []experiment.Cell) (most int) {
	for _, c := range cells {
		most = max(most, nodesOf(c))
	}
	return most
}

// hostNames returns the names of a system's hosts for these cells: one for each node.
func hostNames(system string, cells []experiment.Cell) []string {
	n := nodes(cells)
	if n == 0 {
		return []string{system}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%02d", system, i+1)
	}
	return names
}

// plansChanges reports whether a plan changes links during trials, which needs emulation, and
// whether it needs an emulator that can shape single pairs of hosts.
func plansChanges(plan *experiment.Plan) (changes, pairs bool) {
	for _, c := range plan.Cells {
		cuts := slices.ContainsFunc(c.Faults(), func(f experiment.Fault) bool { return f.Kind() == experiment.FaultCut })
		changes, pairs = changes || c.ChangesLinks(), pairs || cuts || c.Link.Regions != nil
	}
	return changes, pairs
}

// nodesTime returns how long a trial with nodes may take beyond one deadline. It is generous,
// because each operation has its own deadline: leechers may join later, nodes are killed and
// restarted, stores are removed on slow disks, and chains are validated locally.
func nodesTime(cell experiment.Cell, limits experiment.Limits) time.Duration {
	atPace := func(bytes float64) time.Duration { return time.Duration(bytes / 10e6 * float64(time.Second)) }
	switch {
	case cell.Disseminate != nil:
		return 10*(limits.Deadline.Std()+limits.Start.Std()) +
			atPace(float64(cell.Disseminate.Nodes)*float64(cell.Data.Size))
	case cell.Sync != nil:
		return time.Duration(2*nodesOf(cell))*limits.Start.Std() + atPace(storeBytes(cell)) + chainTime(cell, limits)
	}
	return 0
}

// chainTime returns how long generating the chain of a cell, or validating it locally, may take.
func chainTime(c experiment.Cell, limits experiment.Limits) time.Duration {
	return time.Duration(4*c.Estimate.Operation*float64(time.Second)) + limits.Start.Std()
}

// hostNamesOf returns the names of hosts, in order.
func hostNamesOf(hosts []testbed.Host) []string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = h.Name()
	}
	return names
}

// storeOn creates a directory for a store on a host: on disk or, if size is above 0, in memory.
func (r *run) storeOn(ctx context.Context, h testbed.Host, size int64) (scenario.StoreDir, error) {
	if err := ctx.Err(); err != nil {
		return scenario.StoreDir{}, err
	}
	files := h.Files()
	if size > 0 {
		path, err := h.Machine().RAMDisk("store", size)
		remove := func() error { return h.Machine().RemoveRAMDisk(path) }
		return scenario.StoreDir{Files: files, Path: path, Remove: remove}, err
	}
	dir := filepath.Join(r.scratch, "store-"+rand.Text())
	err := files.MkdirAll(dir, 0o700)
	if err != nil {
		return scenario.StoreDir{}, fmt.Errorf("engine: directory of a store: %w", err)
	}
	return scenario.StoreDir{Files: files, Path: dir, Remove: func() error { return files.RemoveAll(dir) }}, nil
}

// storeBytes returns roughly the largest size of a node's store with the chain of a cell.
func storeBytes(cell experiment.Cell) float64 { return experiment.StoreBytes(cell.Estimate.Bytes) }
