package testbed

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// stat is /proc/PID/stat of a process.
type stat struct{ procfs.ProcStat }

// procFS is /proc. Where there is none, its methods fail.
func procFS() procfs.FS {
	fs, _ := procfs.NewDefaultFS()
	return fs
}

// clockTicks is USER_HZ, which is 100 on every architecture Linux and Go share.
const clockTicks = 100

// birth is the start time of a process. Together with the pid it identifies the process;
// pids alone are reused.
func birth(pid int) (uint64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	s, err := p.Stat()
	return s.Starttime, err
}

// scan reads all visible processes of the machine, by pid.
func scan() map[int]stat {
	procs, _ := procfs.AllProcs()
	all := make(map[int]stat, len(procs))
	for _, p := range procs {
		if s, err := p.Stat(); err == nil { // otherwise it has just ended
			all[p.PID] = stat{s}
		}
	}
	return all
}

// membersOf returns the processes that belong to the given leaders: their sessions, their
// groups, and all descendants of these, zombies included.
func membersOf(all map[int]stat, leaders map[int]bool) []stat {
	known := make(map[int]bool, len(all))
	var belongs func(pid int) bool
	belongs = func(pid int) bool {
		in, asked := known[pid]
		if s, there := all[pid]; there && !asked {
			known[pid] = false // processes are read one by one, so one may appear as its own ancestor
			in = leaders[pid] || leaders[s.PGRP] || leaders[s.Session] || belongs(s.PPID)
			known[pid] = in
		}
		return in
	}
	var out []stat
	for pid, s := range all {
		if belongs(pid) {
			out = append(out, s)
		}
	}
	return out
}

// family returns the process and its living descendants. A process that belonged to the
// family once stays in it even after its parent has ended.
func (p *process) family(all map[int]stat) []stat {
	p.seenMu.Lock()
	defer p.seenMu.Unlock()
	leaders := map[int]bool{}
	if s, there := all[p.pid]; !there || s.Starttime == p.birth { // otherwise the pid has been reused
		leaders[p.pid] = true
	}
	for pid, born := range p.seen {
		if all[pid].Starttime == born {
			leaders[pid] = true
		}
	}
	members := membersOf(all, leaders)
	// these belong to an earlier process with the same pid
	members = slices.DeleteFunc(members, func(s stat) bool { return s.Starttime < p.birth })
	p.seen = make(map[int]uint64, len(members))
	for _, s := range members {
		p.seen[s.PID] = s.Starttime
	}
	return members
}

// members returns the live pids of the family, and of processes that left it unnoticed but
// still have its mark in their environment.
func (p *process) members() []int {
	all := scan()
	var pids []int
	for _, s := range p.family(all) {
		delete(all, s.PID)
		if !s.dead() && s.PID != os.Getpid() {
			pids = append(pids, s.PID)
		}
	}
	for pid, s := range all {
		if s.Starttime >= p.birth && !s.dead() && carries(pid, p.mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// carries reports whether the process was started with this variable in its environment,
// which does not change with its session or parent.
func carries(pid int, variable string) bool {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ") // unreadable: none is known
	return slices.Contains(strings.Split(string(b), "\x00"), variable)
}
