package systemtest

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// processes returns the processes of all nodes without duplicates.
func processes(nodes ...system.Node) []testbed.Process {
	var all []testbed.Process
	for _, n := range nodes {
		for _, p := range n.Processes() {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// wantEnded checks that nothing is left of stopped or killed processes.
func (k kit) wantEnded(all []testbed.Process) {
	for _, p := range all {
		if err := syscall.Kill(-p.ID().PID, 0); !errors.Is(err, syscall.ESRCH) {
			k.Errorf("process group %d is there after its end: %v", p.ID().PID, err)
		}
	}
}

// stopTwice checks that a cluster can be stopped twice, and that nothing of it is left.
func (k kit) stopTwice(c system.Cluster) {
	all := processes(c.Nodes()...)
	for range 2 {
		k.must("stop", c.Stop(k.ctx()))
	}
	k.wantEnded(all)
}

// kill kills all processes of nodes and waits until the testbed notices.
func (k kit) kill(nodes ...system.Node) {
	all := processes(nodes...)
	k.signal(syscall.SIGKILL, all)
	for _, p := range all {
		if !await(soon, time.Millisecond, func() bool { return testbed.Ended(p) }) {
			k.Errorf("kill -9 goes unnoticed")
		}
	}
}

// freeze stops the processes of nodes until the returned function is called.
func (k kit) freeze(nodes ...system.Node) (thaw func()) {
	all := processes(nodes...)
	thaw = func() { k.signal(syscall.SIGCONT, all) }
	k.signal(syscall.SIGSTOP, all)
	if !await(soon, time.Millisecond, func() bool { return !slices.ContainsFunc(all, runs) }) {
		thaw()
		k.Fatalf("processes do not stop")
	}
	return thaw
}

// runs reports whether a thread of p's family is not stopped yet.
func runs(p testbed.Process) bool {
	for _, member := range family(p) {
		threads, _ := procfs.AllThreads(member.PID)
		for _, thread := range threads {
			if s, err := thread.Stat(); err == nil && s.State != "T" && s.State != "Z" {
				return true
			}
		}
	}
	return false
}

// signal signals the process groups of processes' families.
func (k kit) signal(s syscall.Signal, all []testbed.Process) {
	for _, p := range all {
		groups := map[int]bool{p.ID().PID: true}
		for _, member := range family(p) {
			groups[member.PGRP] = true
		}
		for group := range groups {
			if err := syscall.Kill(-group, s); err != nil && (group == p.ID().PID || !errors.Is(err, syscall.ESRCH)) {
				k.Errorf("%v to process group %d: %v", s, group, err)
			}
		}
	}
}

// family returns the process group of p and all its descendants: some servers give each connection
// a process in its own session.
func family(p testbed.Process) (all []procfs.ProcStat) {
	procs, _ := procfs.AllProcs()
	stats := map[int]procfs.ProcStat{}
	for _, proc := range procs {
		if s, err := proc.Stat(); err == nil { // otherwise it has ended
			stats[s.PID] = s
		}
	}
	for _, s := range stats {
		for up := s; up.PID > 1; up = stats[up.PPID] {
			if up.PGRP == p.ID().PID {
				all = append(all, s)
				break
			}
		}
	}
	return all
}
