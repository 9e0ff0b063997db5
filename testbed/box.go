package testbed

import (
	"math"
	"os"
	"runtime"
	"time"

	"github.com/prometheus/procfs"

	"github.com/plimsoll-project/plimsoll/record"
)

// box measures the machine and how much of its CPU goes to others, one poll at a time.
type box struct {
	begun bool
	self  usageMeter
	// When others were last accounted for: CPU seconds of the box without interrupts,
	// of everything that descends from us, of kernel threads.
	at                 time.Time
	busy, ours, kernel float64
	oursTotal          counter
	kernelTotal        counter
	others, last       float64
}

// poll takes one look. Ours is what descends from us, and what belongs to the leaders although it
// has put itself elsewhere; leaders gets our own pid added.
func (b *box) poll(all map[int]stat, leaders map[int]bool) []record.Sample {
	nan := math.NaN()
	whole := record.Sample{Process: BoxSample, Role: RoleBox, CPU: nan, RSS: nan, PSS: nan, ReadBytes: nan,
		WriteBytes: nan, FDs: nan, NetRx: nan, NetTx: nan, Threads: nan}
	others := whole
	others.Process = OthersSample
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return []record.Sample{whole, others}
	}
	if m, err := fs.Meminfo(); err == nil && m.MemTotalBytes != nil && m.MemAvailableBytes != nil {
		whole.RSS = float64(*m.MemTotalBytes - *m.MemAvailableBytes)
	}
	self := os.Getpid()
	leaders[self] = true
	if s, err := fs.Stat(); err == nil {
		c := s.CPUTotal
		busy := c.User + c.Nice + c.System + c.Steal // guest time is within user and nice
		whole.CPU = busy + c.IRQ + c.SoftIRQ
		ours := b.oursTotal.update(sumCPU(kin(all, leaders)), cpuRounding)
		kernel := b.kernelTotal.update(sumCPU(kin(all, kernelThreads(all))), cpuRounding)
		others.CPU = b.account(time.Now(), busy, ours, kernel)
	}
	me := record.Sample{Process: SelfSample}
	if s, ok := all[self]; ok {
		s.CUTime, s.CSTime = 0, 0 // they have samples of their own
		me = b.self.poll([]stat{s})
	}
	me.Process, me.Role, me.PID = SelfSample, RoleEngine, self
	if s := throttled(ourGroups()); !math.IsNaN(s) {
		held := whole
		held.Process, held.CPU, held.RSS = ThrottledSample, s, nan
		return []record.Sample{whole, others, held, me}
	}
	return []record.Sample{whole, others, me}
}

// accountEvery is the least time over which others are accounted for: the box is
// counted in ticks, processes to the nanosecond, and the differences of short
// intervals, of which none is negative, would add up.
const accountEvery = time.Second

// account is the CPU seconds that others have used since the first look.
func (b *box) account(now time.Time, busy, ours, kernel float64) float64 {
	used := 0.0
	if b.begun {
		// Interrupt time is charged to whom it hits as well, so ours may be more than
		// its share; others are never less than nothing, nor more than the machine.
		used = max(0, (busy-b.busy)-(ours-b.ours)-(kernel-b.kernel))
		used = min(used, now.Sub(b.at).Seconds()*float64(runtime.NumCPU()))
	}
	if !b.begun || now.Sub(b.at) >= accountEvery {
		b.others += used
		b.begun, b.at, b.busy, b.ours, b.kernel = true, now, busy, ours, kernel
		used = 0
	}
	b.last = max(b.last, b.others+used)
	return b.last
}

// kthreadd is the ancestor of all kernel threads.
const kthreadd = 2

// kernelThreads is kthreadd, where it can be seen: not from within a
// container's PID namespace.
func kernelThreads(all map[int]stat) map[int]bool {
	if all[kthreadd].Comm != "kthreadd" {
		return nil
	}
	return map[int]bool{kthreadd: true}
}

func sumCPU(procs []stat) (sum float64) {
	for _, s := range procs {
		sum += s.cpu()
	}
	return sum
}
