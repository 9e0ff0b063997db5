package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/plimsoll-project/plimsoll/record"
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

// cpu returns the CPU seconds of a process and of the children that it has waited for.
func (s stat) cpu() float64 {
	own := float64(s.UTime+s.STime) / clockTicks
	if !s.dead() {
		var ts unix.Timespec
		// The CPU clock of another process: clock_getcpuclockid(3), all its
		// threads, to the nanosecond.
		if unix.ClockGettime(int32(^s.PID<<3|2), &ts) == nil {
			own = float64(ts.Sec) + float64(ts.Nsec)/1e9
		}
	}
	return own + float64(s.CUTime+s.CSTime)/clockTicks
}

func (s stat) dead() bool { return s.State == "Z" || s.State == "X" }

func gone(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return err != nil
}

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

// ThreadCPU returns the CPU seconds of each thread of a process by thread id; empty where
// the kernel does not report them.
func ThreadCPU(pid int) map[int]float64 {
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return nil
	}
	all := map[int]float64{}
	for _, t := range threads {
		if s, err := t.Schedstat(); err == nil { // else it has ended
			all[t.PID] = float64(s.RunningNanoseconds) / 1e9
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

// Peak implements Process.
func (p *process) Peak() float64 {
	if p.final() == nil {
		if proc, err := procfs.NewProc(p.pid); err == nil {
			if s, err := proc.NewStatus(); err == nil && s.VmHWM > 0 {
				return float64(s.VmHWM)
			}
		}
	}
	if used := p.final(); used != nil { // perhaps only since we looked
		return float64(used.Maxrss) * 1024
	}
	return math.NaN()
}

// final is the kernel's resource usage of a process that has ended; nil before.
func (p *process) final() *syscall.Rusage {
	if Ended(p) {
		return p.used
	}
	return nil
}

// Memory implements Process.
func (p *process) Memory() Memory {
	m := Memory{}
	alive := 0
	for _, s := range p.family(scan()) {
		if s.dead() {
			continue
		}
		proc, err := procfs.NewProc(s.PID)
		if err != nil {
			continue // it has just ended
		}
		alive++
		if r, err := proc.ProcSMapsRollup(); err == nil {
			m.RSS += float64(r.Rss)
		} else if !gone(s.PID) {
			m.RSS += float64(s.ResidentMemory())
		}
		if st, err := proc.NewStatus(); err == nil {
			m.Peak += float64(st.VmHWM)
		} else if !gone(s.PID) {
			m.Peak = math.NaN()
		}
	}
	if alive == 0 {
		return Memory{math.NaN(), math.NaN()}
	}
	return m
}

// ResetPeak implements Process, by proc_pid_clear_refs(5), value 5.
func (p *process) ResetPeak() error {
	var errs []error
	for _, s := range p.family(scan()) {
		if s.dead() {
			continue
		}
		if err := os.WriteFile("/proc/"+strconv.Itoa(s.PID)+"/clear_refs", []byte("5"), 0); err != nil && !gone(s.PID) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// watched is a server on this machine that we did not start.
type watched struct {
	name  string
	pids  map[int]uint64 // listening processes when it was found, with their start times
	usage usageMeter
}

// Watch observes the processes that listen at an address (host:port) of this machine like
// our own: they get samples under the given name with role "system", and are not counted
// as others. It does not affect them. ok is false if the address is elsewhere, or if the
// kernel does not show which process listens there.
func (t *Testbed) Watch(ctx context.Context, name, address string) (ok bool, err error) {
	host, portText, err := net.SplitHostPort(address)
	port, notNumber := strconv.Atoi(portText)
	if err := cmp.Or(err, notNumber); err != nil {
		return false, fmt.Errorf("testbed: watch %s: %w", address, err)
	}
	here, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return false, nil // it is the address of another machine
	}
	here.Close()
	sockets := listeners(port)
	w := &watched{name: name, pids: map[int]uint64{}}
	for pid, s := range scan() {
		if pid != os.Getpid() && holds(pid, sockets) {
			w.pids[pid] = s.Starttime
		}
	}
	if len(w.pids) == 0 {
		return false, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched = append(t.watched, w)
	return true, nil
}

// sample measures the watched processes and their descendants, and adds their pids to
// leaders.
func (w *watched) sample(all map[int]stat, leaders map[int]bool) record.Sample {
	mine := map[int]bool{}
	pid := 0
	for p, birth := range w.pids {
		if all[p].Starttime == birth { // pids are used again
			mine[p], leaders[p] = true, true
			if pid == 0 || p < pid {
				pid = p
			}
		}
	}
	s := w.usage.poll(membersOf(all, mine))
	s.Process, s.Role, s.PID = w.name, "system", pid
	return s
}

// holds reports whether a process has one of the sockets open.
func holds(pid int, sockets map[string]bool) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	open, _ := p.FileDescriptorTargets() // empty for another user's process
	return slices.ContainsFunc(open, func(file string) bool { return sockets[file] })
}

// listeners returns the sockets, named as in /proc/PID/fd, that listen on a TCP port of
// this process's network.
func listeners(port int) map[string]bool {
	const listens = 10
	//lint:ignore SA1019 what replaces it is a library to ask the kernel with, for one question
	v4, _ := procFS().NetTCP()
	//lint:ignore SA1019 likewise
	v6, _ := procFS().NetTCP6() // without IPv6 there is only one of them
	out := map[string]bool{}
	for _, s := range slices.Concat(v4, v6) {
		if s.St == listens && s.LocalPort == uint64(port) {
			out[fmt.Sprintf("socket:[%d]", s.Inode)] = true
		}
	}
	return out
}
