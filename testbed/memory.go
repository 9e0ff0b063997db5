package testbed

import (
	"errors"
	"math"
	"os"
	"strconv"

	"github.com/prometheus/procfs"
)

// Memory is what a process and all that it started hold, in bytes, summed over
// them. A number that the kernel would not tell is NaN.
type Memory struct {
	RSS  float64 // resident set: memory shared by several counts once for each
	PSS  float64 // proportional set: what is shared is divided among those that share it
	Peak float64 // highest resident set of each (VmHWM) since it began or [Process.ResetPeak], not necessarily at the same moment
}

// Memory looks at the process now. It walks page tables (milliseconds for
// gigabytes), so it has no place within what is timed.
func (p *Process) Memory() Memory {
	m := Memory{}
	alive := 0
	for _, s := range p.family(scan()) {
		if s.dead() {
			continue
		}
		proc, err := procfs.NewProc(s.pid)
		if err != nil {
			continue // it has just ended
		}
		alive++
		if r, err := proc.ProcSMapsRollup(); err == nil {
			m.RSS += float64(r.Rss)
			m.PSS += float64(r.Pss)
		} else if !gone(s.pid) {
			m.RSS += float64(s.rss)
			m.PSS = math.NaN()
		}
		if st, err := proc.NewStatus(); err == nil {
			m.Peak += float64(st.VmHWM)
		} else if !gone(s.pid) {
			m.Peak = math.NaN()
		}
	}
	if alive == 0 {
		return Memory{math.NaN(), math.NaN(), math.NaN()}
	}
	return m
}

// ResetPeak makes [Memory.Peak] begin anew at what is resident now
// (proc_pid_clear_refs(5), value 5). What the process still holds from earlier
// work is resident: the next peak is never less than that.
func (p *Process) ResetPeak() error {
	var errs []error
	for _, s := range p.family(scan()) {
		if s.dead() {
			continue
		}
		if err := os.WriteFile("/proc/"+strconv.Itoa(s.pid)+"/clear_refs", []byte("5"), 0); err != nil && !gone(s.pid) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
