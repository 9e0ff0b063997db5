package testbed

import (
	"errors"
	"math"
	"os"
	"strconv"

	"github.com/prometheus/procfs"
)

// Memory implements Process.
func (p *process) Memory() Memory {
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

// ResetPeak implements Process, by proc_pid_clear_refs(5), value 5.
func (p *process) ResetPeak() error {
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
