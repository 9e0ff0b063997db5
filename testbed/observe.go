package testbed

import (
	"math"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netlink"

	"github.com/plimsoll-project/plimsoll/internal/timing"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed/link"
)

// Names of the samples that do not describe a process on a host.
const (
	// BoxSample is the whole machine: CPU is its busy time since boot, RSS the memory
	// in use (total minus available), by us and by others.
	BoxSample = "box"
	// OthersSample is CPU used by others: neither our processes nor the kernel's own
	// work (interrupts and kernel threads, which mostly carry our traffic), but including
	// time stolen by a hypervisor. It starts at 0 with the testbed and never decreases.
	OthersSample = "others"
	// SelfSample is the plimsoll process itself.
	SelfSample = "plimsoll"
)

// OfMachine returns the name of such a sample of a machine; that of the engine's machine has
// no suffix.
func OfMachine(sample string, m Machine) string {
	if m.Name() == "" {
		return sample
	}
	return sample + "@" + m.Name()
}

// Roles of those samples.
const (
	RoleBox    = "box"
	RoleEngine = "engine"
)

// Observe polls all processes of the testbed and the machine at an interval, until stop is
// called, which polls once more and returns after sink has received it. The times of samples
// count from epoch. Polls follow an absolute schedule: a slow one makes the next ones drop out,
// it does not shift them. sink is called from one goroutine at a time.
func (t *Testbed) Observe(epoch time.Time, every time.Duration, sink func([]record.Sample)) (stop func()) {
	t.Poll(epoch) // drops the samples of processes that ended before
	poll := func() { sink(t.Poll(epoch)) }
	poll()
	end := timing.Every(every, poll)
	return sync.OnceFunc(func() {
		end()
		poll()
	})
}

// Poll samples every process and the machines once. It includes the final samples of
// processes that ended since the last poll.
func (t *Testbed) Poll(epoch time.Time) []record.Sample {
	start := time.Since(epoch)
	t.looking.Lock()
	defer t.looking.Unlock()
	t.mu.Lock()
	hosts, watched, remote := slices.Concat(t.hosts, t.apart), t.watched, t.remote
	t.mu.Unlock()
	elsewhere := make([][]record.Sample, len(remote))
	AtOnce(len(remote), func(i int) error {
		elsewhere[i] = remote[i].Poll()
		return nil
	})
	t.polling.Lock()
	defer t.polling.Unlock()
	all := scan()
	samples := append(slices.Concat(elsewhere...), t.lastSamples...)
	t.lastSamples = nil
	procs := processes(hosts...)
	if t.hub != nil {
		procs = append(procs, processes(t.hub)...)
	}
	for _, p := range procs {
		if p.cmd.Role != RoleAgent {
			samples = append(samples, p.sample(all))
		}
	}
	leaders := map[int]bool{}
	for _, p := range procs {
		leaders[p.pid] = true
	}
	for _, w := range watched {
		samples = append(samples, w.sample(all, leaders))
	}
	samples = append(samples, t.box.poll(all, leaders)...)
	end := time.Since(epoch)
	for i := range samples {
		samples[i].Start, samples[i].End = start, end
	}
	return samples
}

func (p *process) sample(all map[int]stat) record.Sample {
	s := p.usage.poll(p.family(all))
	s.Process, s.Role, s.PID = p.label, p.cmd.Role, p.pid
	if used := p.final(); used != nil { // it is the exact one
		s.CPU = p.usage.cpu.atLeast(float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9)
		s.ReadBytes = p.usage.read.atLeast(float64(used.Inblock) * ioBlock)
		s.WriteBytes = p.usage.write.atLeast(float64(used.Oublock) * ioBlock)
	}
	return s
}

// ioBlock is the unit of reads and writes in getrusage(2), which counts the same as
// /proc/PID/io.
const ioBlock = 512

// usageMeter accumulates the resource usage of one process tree. Only one poll runs at a time.
type usageMeter struct{ cpu, read, write counter }

// poll measures the members of a tree, zombies included: their usage is not their
// parent's until it has waited for them.
func (m *usageMeter) poll(members []stat) record.Sample {
	var cpu, rss, read, write float64
	for _, s := range members {
		cpu += s.cpu()
		if s.dead() {
			continue
		}
		p, err := procfs.NewProc(s.PID)
		if err != nil {
			continue // it has just ended
		}
		rss += float64(s.ResidentMemory())
		if io, err := p.IO(); err == nil {
			read += float64(io.ReadBytes)
			write += float64(io.WriteBytes)
		} else if !gone(s.PID) {
			read, write = math.NaN(), math.NaN()
		}
	}
	return record.Sample{
		CPU: m.cpu.update(cpu, cpuRounding), RSS: rss,
		ReadBytes: m.read.update(read, 0), WriteBytes: m.write.update(write, 0),
	}
}

// cpuRounding: the kernel reports a process's own CPU in nanoseconds, but the CPU of
// children that were waited for in whole ticks of user and system time, so a sum may
// seem to decrease by this much.
const cpuRounding = 3.0 / clockTicks

// counter turns a sum over processes that come and go into a cumulative number. The sum
// decreases when a process ends whose parent does not inherit its usage; what was counted
// once stays counted.
type counter struct{ raw, offset, value float64 }

func (c *counter) update(raw, rounding float64) float64 {
	if math.IsNaN(raw) {
		return raw
	}
	if c.raw-raw > rounding {
		c.offset += c.raw - raw
	}
	c.raw = raw
	c.value = max(c.value, raw+c.offset)
	return c.value
}

func (c *counter) atLeast(v float64) float64 {
	c.value = max(c.value, v)
	return c.value
}

// Traffic implements Host.
func (h *host) Traffic() (rx, tx float64) {
	if h.nl == nil {
		return math.NaN(), math.NaN()
	}
	links, err := h.nl.LinkList()
	if err != nil {
		return math.NaN(), math.NaN()
	}
	return traffic(links)
}

// traffic returns the bytes of IP packets. A super-packet counts with the headers of one segment.
func traffic(links []netlink.Link) (rx, tx float64) {
	for _, l := range links {
		if a := l.Attrs(); a.Flags&net.FlagLoopback == 0 && a.Statistics != nil {
			rx += float64(a.Statistics.RxBytes) - link.Framing*float64(a.Statistics.RxPackets)
			tx += float64(a.Statistics.TxBytes) - link.Framing*float64(a.Statistics.TxPackets)
		}
	}
	return rx, tx
}

// box measures the machine and how much of its CPU others use. Only one poll runs at a time.
type box struct {
	self usageMeter
	// As of the last accounting, if there was one: CPU seconds of the machine without interrupts, of all
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
	if !b.at.IsZero() {
		// Interrupt time is also charged to the interrupted process, so ours may be too
		// large; others use at least nothing and at most the whole machine.
		used = max(0, (busy-b.busy)-(ours-b.ours)-(kernel-b.kernel))
		used = min(used, now.Sub(b.at).Seconds()*float64(runtime.NumCPU()))
	}
	if now.Sub(b.at) >= accountEvery {
		b.others += used
		b.at, b.busy, b.ours, b.kernel = now, busy, ours, kernel
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
