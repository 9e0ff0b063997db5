package testbed

import (
	"math"
	"slices"
	"sync"
	"syscall"

	"github.com/prometheus/procfs"
)

// Trace is the processes of some hosts over a time: those that ran when it began,
// and all that were started since, also those that have ended.
type Trace struct {
	stops []func()

	mu    sync.Mutex
	procs []Process
}

// TraceOf begins one; the caller must Stop it.
func TraceOf(hosts ...Host) *Trace {
	tr := &Trace{}
	for _, h := range hosts {
		tr.stops = append(tr.stops, h.Follow(tr.add))
	}
	return tr
}

func (tr *Trace) add(p Process) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.procs = append(tr.procs, p)
}

// Processes are those so far.
func (tr *Trace) Processes() []Process {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return slices.Clone(tr.procs)
}

// Stop ends it: what is started later is not in it.
func (tr *Trace) Stop() {
	for _, stop := range tr.stops {
		stop()
	}
}

// Peak implements Process.
func (p *process) Peak() float64 {
	p.mu.Lock()
	state := p.state
	p.mu.Unlock()
	if state == nil {
		if proc, err := procfs.NewProc(p.pid); err == nil {
			if s, err := proc.NewStatus(); err == nil && s.VmHWM > 0 {
				return float64(s.VmHWM)
			}
		}
		select {
		case <-p.done: // it has ended while we looked
			p.mu.Lock()
			state = p.state
			p.mu.Unlock()
		default:
		}
	}
	if state != nil {
		if u, ok := state.SysUsage().(*syscall.Rusage); ok {
			return float64(u.Maxrss) * 1024
		}
	}
	return math.NaN()
}

// lastWord is the final account of a process that is taken off the books, for the
// next poll: what it used since the one before must not be lost, and one that came
// and went between two polls would never be seen. It is kept during
// observations only.
func (p *process) lastWord() {
	t := p.host.t
	if t.observers.Load() == 0 {
		return
	}
	t.polling.Lock()
	defer t.polling.Unlock()
	s := p.sample(nil)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastWords = append(t.lastWords, s)
}

// parting looks at a process that is about to be ended: the kernel reports what the
// members of its family have read and written only while they live.
func (p *process) parting() {
	t := p.host.t
	if t.observers.Load() == 0 {
		p.family(scan())
		return
	}
	t.polling.Lock()
	defer t.polling.Unlock()
	p.sample(scan())
}
