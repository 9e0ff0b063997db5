package engine

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/testbed"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// checkMachine checks what a machine lacks for the run. Links are emulated on this machine.
func checkMachine(_ context.Context, cfg Config, at nodePlace) []Problem {
	changes, _ := plansChanges(cfg.Plan)
	opt := testbedOptions(cfg)
	if at.Name() != "" {
		opt = testbed.Options{Plain: !opt.Mesh, Emulate: opt.Emulate}
	}
	all := at.Problems(opt)
	for i, p := range all {
		if changes && (p.Name == "namespaces" || p.Name == "emulator") {
			all[i].Blocking = true // links that are not emulated cannot be changed during a trial
		}
	}
	return all
}

// testbedOptions returns the options of the plan's testbed.
func testbedOptions(cfg Config) testbed.Options {
	wanted := cfg.Plan.Experiment.Link
	emulator := wanted.Emulator
	if _, pairs := plansChanges(cfg.Plan); pairs && (emulator == "" || emulator == "auto") {
		emulator = link.Own // the only one that can shape single pairs of hosts
	}
	mesh := cfg.Machines > 0 && EmulatesBetween(cfg.Plan)
	if mesh && !ByKernel(cfg.Plan) {
		emulator = link.Own
	}
	real := cfg.Machines > 0 && !mesh
	return testbed.Options{
		Dir: cfg.Dir, Emulate: emulator, IPv6: wanted.IPv6,
		Plain: real || attaches(cfg.Plan) && !shapes(cfg.Plan), Hosts: cfg.Hosts, Real: real, Mesh: mesh,
	}
}

// checkLinks refuses changes of links that no emulator can make here. An attached system is
// reached over the existing network, so its cells have no link to check.
func checkLinks(_ context.Context, cfg Config, _ nodePlace) []Problem {
	if cfg.Machines > 0 {
		return checkLinksBetween(cfg.Plan, cfg.Clients)
	}
	if _, pairs := plansChanges(cfg.Plan); pairs && cfg.Plan.Experiment.Link.Emulator == link.NetemDiscipline {
		return []Problem{refuse("netem cannot shape pairs of hosts separately, as link.regions and faults that cut "+
			"nodes off require", "set link.emulator to user, or to auto, which chooses it")}
	}
	return nil
}

// checkMemory compares the available memory of a machine with that of the nodes of all systems on it, which run at the
// same time, and of the largest RAM disk; there is one at a time. The size of the chain on it is the plan's estimate:
// it is checked again at the trial, when the chain exists. Systems that do not state the memory of their nodes count
// as 0.
func checkMemory(_ context.Context, cfg Config, at nodePlace) []Problem {
	var need float64
	var of []string
	disk := largest(cfg.Plan.Cells, func(c experiment.Cell) float64 {
		if c.Sync == nil || c.Sync.Storage != "ram" {
			return 0
		}
		return experiment.RAMDiskBytes(storeBytes(c))
	})
	if disk > 0 && at.first {
		need = disk + testbed.RAMReserve
		of = append(of, "a RAM disk for the largest store, with "+words.Bytes(testbed.RAMReserve)+
			" left for everything else")
	}
	for _, use := range cfg.Plan.Experiment.Systems {
		if n := at.nodes(use); n > 0 && !use.Attached() {
			need += float64(n) * float64(infoOf(cfg.Systems, use).NodeMemory)
			of = append(of, fmt.Sprintf("%d nodes of %s", n, use.Name))
		}
	}
	if need == 0 {
		return nil
	}
	free, err := at.AvailableMemory()
	switch {
	case err != nil:
		return []Problem{{What: err.Error()}}
	case need <= free:
		return nil
	}
	return []Problem{refuse(fmt.Sprintf("%s take about %s; %s of memory are available", strings.Join(of, ", "),
		words.Bytes(need), words.Bytes(free)),
		"fewer nodes (disseminate.nodes, sync.peers), a shorter chain or storage: disk, or fewer systems at a time, "+
			"or skip: [memory]")}
}

// spareFiles is the number of files that a process has open besides its connections: logs,
// the database, served files, observed processes.
const spareFiles = 256

// checkFiles refuses more connections than a process may have open files, by the hard limit:
// a run raises the soft one.
func checkFiles(_ context.Context, cfg Config, _ nodePlace) []Problem {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return nil
	}
	most := 0
	for _, c := range cfg.Plan.Cells {
		switch {
		case c.Retrieve != nil:
			most = max(most, c.Retrieve.Concurrency)
		case c.Overhead != nil:
			most = max(most, c.Overhead.Concurrency)
		}
	}
	if uint64(most+spareFiles) <= limit.Max {
		return nil
	}
	return []Problem{refuse(fmt.Sprintf("%d connections at once, and at most %d open files per process", most,
		limit.Max), fmt.Sprintf("raise the hard limit to %d (ulimit -Hn, or LimitNOFILE= in the service), or use fewer",
		most+spareFiles))}
}

// checkStorage refuses to compare a RAM disk with a "disk" that is itself in memory, like the
// directory for temporary files on some machines.
func checkStorage(_ context.Context, cfg Config, at nodePlace) []Problem {
	uses := func(storage string) bool {
		return slices.ContainsFunc(cfg.Plan.Cells, func(c experiment.Cell) bool {
			return c.Sync != nil && c.Sync.Storage == storage
		})
	}
	if !uses("disk") || !at.first { // the stores are on the machine of the first node
		return nil
	}
	switch on, err := at.Filesystem(os.TempDir()); {
	case err != nil:
		return []Problem{{What: fmt.Sprintf("storage: disk: %v", err)}}
	case !on.Memory:
		return nil
	}
	return []Problem{{Blocking: uses("ram"), Hint: "set TMPDIR to a directory on a disk",
		What: fmt.Sprintf("storage: disk: stores would be in %s, a file system in memory, so no disk would be measured",
			os.TempDir())}}
}
