package testbed

import (
	"math"
	"os"
	"runtime"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// box measures the machine and how much of its CPU others use. Only one poll runs at a time.
type box struct {
	begun bool
	self  usageMeter
	// As of the last accounting: CPU seconds of the machine without interrupts, of all
	// our descendants, and of kernel threads.
	at                 time.Time
	busy, ours, kernel float64
	oursTotal          counter
	kernelTotal        counter
	others, last       float64
}

// poll measures once. Ours are our descendants, and the processes that belong to the leaders
// although they detached themselves; our own pid is added to leaders.
func (b *box) poll(all map[int]stat, leaders map[int]bool) []record.Sample {
	nan := math.NaN()
	whole := record.Sample{Process: BoxSample, Role: RoleBox, CPU: nan, RSS: nan, ReadBytes: nan, WriteBytes: nan}
	others := whole
	others.Process = OthersSample
	fs := procFS()
	if m, err := fs.Meminfo(); err == nil && m.MemTotalBytes != nil && m.MemAvailableBytes != nil {
		whole.RSS = float64(*m.MemTotalBytes - *m.MemAvailableBytes)
	}
	self := os.Getpid()
	leaders[self] = true
	if s, err := fs.Stat(); err == nil {
		c := s.CPUTotal
		busy := c.User + c.Nice + c.System + c.Steal // guest time is within user and nice
		whole.CPU = busy + c.IRQ + c.SoftIRQ
		ours := b.oursTotal.update(sumCPU(membersOf(all, leaders)), cpuRounding)
		// In the PID namespace of a container, the ancestor of all kernel threads is not visible.
		ancestor := map[int]bool{kthreadd: all[kthreadd].Comm == "kthreadd"}
		kernel := b.kernelTotal.update(sumCPU(membersOf(all, ancestor)), cpuRounding)
		others.CPU = b.account(time.Now(), busy, ours, kernel)
	}
	me := record.Sample{Process: SelfSample}
	if s, ok := all[self]; ok {
		s.CUTime, s.CSTime = 0, 0 // children have their own samples
		me = b.self.poll([]stat{s})
	}
	me.Process, me.Role, me.PID = SelfSample, RoleEngine, self
	samples := []record.Sample{whole, others, me}
	if s := throttled(ourGroups()); !math.IsNaN(s) {
		whole.Process, whole.CPU, whole.RSS = ThrottledSample, s, nan
		samples = append(samples, whole)
	}
	return samples
}

// accountEvery is the shortest accounting interval: the machine's CPU is counted in ticks,
// that of processes in nanoseconds, and the differences over shorter intervals, which are
// never negative, would add up.
const accountEvery = time.Second

// account returns the CPU seconds that others have used since the first poll.
func (b *box) account(now time.Time, busy, ours, kernel float64) float64 {
	used := 0.0
	if b.begun {
		// Interrupt time is also charged to the interrupted process, so ours may be too
		// large; others use at least nothing and at most the whole machine.
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

func sumCPU(procs []stat) (sum float64) {
	for _, s := range procs {
		sum += s.cpu()
	}
	return sum
}
