package testbed

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// stat is what /proc/PID/stat says about a process.
type stat struct {
	pid, ppid, pgrp, session int
	state, comm              string
	own, children            float64 // CPU seconds: itself, its children that ended and were waited for
	threads                  int
	birth                    uint64 // clock ticks since boot
	rss                      int    // bytes
}

// clockTicks is USER_HZ, which is 100 on every architecture Linux and Go share.
const clockTicks = 100

func readStat(p procfs.Proc) (stat, error) {
	s, err := p.Stat()
	if err != nil {
		return stat{}, err
	}
	return stat{
		pid: s.PID, ppid: s.PPID, pgrp: s.PGRP, session: s.Session, state: s.State, comm: s.Comm,
		own: float64(s.UTime+s.STime) / clockTicks, children: float64(s.CUTime+s.CSTime) / clockTicks,
		threads: s.NumThreads, birth: s.Starttime, rss: s.ResidentMemory(),
	}, nil
}

// birth is when pid started: with the pid it names a process for good, pids
// alone are used again.
func birth(pid int) (uint64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	s, err := readStat(p)
	return s.birth, err
}

// scan reads every process of the machine that we can see, by pid.
func scan() map[int]stat {
	procs, _ := procfs.AllProcs()
	all := make(map[int]stat, len(procs))
	for _, p := range procs {
		if s, err := readStat(p); err == nil { // it may have ended meanwhile
			all[p.PID] = s
		}
	}
	return all
}

// kin is the processes that belong to the given leaders: their sessions,
// their groups and all the descendants of these, zombies included.
func kin(all map[int]stat, leaders map[int]bool) []stat {
	known := make(map[int]bool, len(all))
	var belongs func(pid, depth int) bool
	belongs = func(pid, depth int) bool {
		if in, ok := known[pid]; ok {
			return in
		}
		s, ok := all[pid]
		if !ok || depth > 64 {
			return false
		}
		in := leaders[pid] || leaders[s.pgrp] || leaders[s.session] || belongs(s.ppid, depth+1)
		known[pid] = in
		return in
	}
	var out []stat
	for pid, s := range all {
		if belongs(pid, 0) {
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
	if s, there := all[p.pid]; !there || s.birth == p.birth { // else its pid is another's by now
		leaders[p.pid] = true
	}
	for pid, born := range p.seen {
		if all[pid].birth == born {
			leaders[pid] = true
		}
	}
	members := kin(all, leaders)
	// of another process that had our pid
	members = slices.DeleteFunc(members, func(s stat) bool { return s.birth < p.birth })
	p.seen = make(map[int]uint64, len(members))
	for _, s := range members {
		p.seen[s.pid] = s.birth
	}
	return members
}

// members are the pids that live of the process's family, and of what has left
// it behind our back but still carries its mark.
func (p *process) members() []int {
	all := scan()
	var pids []int
	for _, s := range p.family(all) {
		delete(all, s.pid)
		if !s.dead() && s.pid != os.Getpid() {
			pids = append(pids, s.pid)
		}
	}
	for pid, s := range all {
		if s.birth >= p.birth && !s.dead() && carries(pid, p.marks...) {
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
