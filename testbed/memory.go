package testbed

import (
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/prometheus/procfs"
)

// Ended reports whether a process has ended or can no longer be reached.
func Ended(p Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// Trace returns a function that lists the processes of hosts that were running when Trace
// was called, and all that were started since, ended ones included.
func Trace(hosts ...Host) func() []Process {
	over := map[Process]bool{}
	for _, h := range hosts {
		for _, p := range h.Processes() {
			over[p] = Ended(p)
		}
	}
	return func() (all []Process) {
		for _, h := range hosts {
			all = append(all, h.Processes()...)
		}
		return slices.DeleteFunc(all, func(p Process) bool { return over[p] })
	}
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
