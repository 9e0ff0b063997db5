package testbed

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// stat is what /proc/PID/stat says about a process.
type stat struct{ procfs.ProcStat }

// clockTicks is USER_HZ, which is 100 on every architecture Linux and Go share.
const clockTicks = 100

// birth is when pid started: with the pid it names a process for good, pids
// alone are used again.
func birth(pid int) (uint64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	s, err := p.Stat()
	return s.Starttime, err
}

// scan reads every process of the machine that we can see, by pid.
func scan() map[int]stat {
	procs, _ := procfs.AllProcs()
	all := make(map[int]stat, len(procs))
	for _, p := range procs {
		if s, err := p.Stat(); err == nil { // it may have ended meanwhile
			all[p.PID] = stat{s}
		}
	}
	return all
}

// kin is the processes that belong to the given leaders: their sessions,
// their groups and all the descendants of these, zombies included.
func kin(all map[int]stat, leaders map[int]bool) []stat {
	known := make(map[int]bool, len(all))
	var belongs func(pid int) bool
	belongs = func(pid int) bool {
		in, asked := known[pid]
		if s, there := all[pid]; there && !asked {
			known[pid] = false // should it be its own ancestor: processes are read one after the other
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

// family is the process, all that it started and that still is. Who belonged
// to it once does so when its parent is gone, too.
func (p *process) family(all map[int]stat) []stat {
	p.seenMu.Lock()
	defer p.seenMu.Unlock()
	leaders := map[int]bool{}
	if s, there := all[p.pid]; !there || s.Starttime == p.birth { // else its pid is another's by now
		leaders[p.pid] = true
	}
	for pid, born := range p.seen {
		if all[pid].Starttime == born {
			leaders[pid] = true
		}
	}
	members := kin(all, leaders)
	// of another process that had our pid
	members = slices.DeleteFunc(members, func(s stat) bool { return s.Starttime < p.birth })
	p.seen = make(map[int]uint64, len(members))
	for _, s := range members {
		p.seen[s.PID] = s.Starttime
	}
	return members
}

// members are the pids that live of the process's family, and of what has left
// it behind our back but still carries its mark.
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
		if s.Starttime >= p.birth && !s.dead() && carries(pid, p.marks...) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// carries reports whether the process was started with these variables in its
// environment: whatever session or parent it has now, that stays.
func carries(pid int, variables ...string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	env := strings.Split(string(b), "\x00")
	for _, v := range variables {
		if !slices.Contains(env, v) {
			return false
		}
	}
	return true
}
