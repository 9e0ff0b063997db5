package systemtest

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/system"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// processes are those of all nodes, each once.
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

// wantEnded holds that nothing is left of processes that were stopped or killed.
func wantEnded(t *testing.T, all []testbed.Process) {
	t.Helper()
	for _, p := range all {
		if err := syscall.Kill(-p.ID().PID, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process group %d is there after its end: %v", p.ID().PID, err)
		}
	}
}

// kill ends all processes of nodes at once and waits until that is noticed.
func kill(t *testing.T, nodes ...system.Node) {
	t.Helper()
	all := processes(nodes...)
	for _, p := range all {
		signal(t, p, syscall.SIGKILL)
	}
	for _, p := range all {
		select {
		case <-p.Done():
		case <-time.After(soon):
			t.Error("kill -9 goes unnoticed")
		}
	}
}

// freeze stops the processes of nodes until the returned function is called.
func freeze(t *testing.T, nodes ...system.Node) (thaw func()) {
	t.Helper()
	all := processes(nodes...)
	thaw = func() {
		for _, p := range all {
			signal(t, p, syscall.SIGCONT)
		}
	}
	for _, p := range all {
		signal(t, p, syscall.SIGSTOP)
	}
	for end := time.Now().Add(soon); slices.ContainsFunc(all, runs); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			thaw()
			t.Fatal("processes do not stop")
		}
	}
	return thaw
}

// runs reports whether a thread of p's family is not stopped, which takes a moment.
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

// signal signals the process groups of p's family.
func signal(t *testing.T, p testbed.Process, s syscall.Signal) {
	t.Helper()
	groups := map[int]bool{p.ID().PID: true}
	for _, member := range family(p) {
		groups[member.PGRP] = true
	}
	for group := range groups {
		if err := syscall.Kill(-group, s); err != nil && (group == p.ID().PID || !errors.Is(err, syscall.ESRCH)) {
			t.Errorf("%v to process group %d: %v", s, group, err)
		}
	}
}

// family is the process group of p and all its descendants: some servers give
// each connection a process in a session of its own.
func family(p testbed.Process) (all []procfs.ProcStat) {
	procs, _ := procfs.AllProcs()
	stats := map[int]procfs.ProcStat{}
	for _, proc := range procs {
		if s, err := proc.Stat(); err == nil { // else it has ended
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
