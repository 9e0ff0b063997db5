package testbed

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
)

// stat is what /proc/PID/stat says about a process.
type stat struct {
	pid, ppid, pgrp, session int
	state                    byte
	comm                     string
	own, children            float64 // CPU seconds: itself, its children that ended and were waited for
	threads                  int
	birth                    uint64 // clock ticks since boot
	rss                      int64  // bytes
}

// clockTicks is USER_HZ, which is 100 on every architecture Linux and Go share.
const clockTicks = 100

func readStat(pid int) (stat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(b)
}

// parseStat reads proc_pid_stat(5). The name is in parentheses and may hold
// anything, parentheses included.
func parseStat(b []byte) (stat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return stat{}, strconv.ErrSyntax
	}
	f := strings.Fields(string(b[end+1:]))
	if len(f) < 22 {
		return stat{}, strconv.ErrSyntax
	}
	var err error
	num := func(s string) int64 {
		n, e := strconv.ParseInt(s, 10, 64)
		if e != nil {
			err = e
		}
		return n
	}
	s := stat{
		pid: int(num(strings.TrimSpace(string(b[:open])))), comm: string(b[open+1 : end]), state: f[0][0],
		ppid: int(num(f[1])), pgrp: int(num(f[2])), session: int(num(f[3])),
		own:      float64(num(f[11])+num(f[12])) / clockTicks,
		children: float64(num(f[13])+num(f[14])) / clockTicks,
		threads:  int(num(f[17])), birth: uint64(num(f[19])), rss: num(f[21]) * int64(os.Getpagesize()),
	}
	return s, err
}

// birth is when pid started: with the pid it names a process for good, pids
// alone are used again.
func birth(pid int) (uint64, error) {
	s, err := readStat(pid)
	return s.birth, err
}

// scan reads every process of the machine that we can see, by pid.
func scan() map[int]stat {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	all := make(map[int]stat, len(names))
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil { // it may have ended meanwhile
			all[pid] = s
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
