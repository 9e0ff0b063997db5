package engine

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// meter computes the resource usage of a trial's processes from their samples.
type meter struct {
	ours map[string]placed // processes of the loaded system, by sample name; those of other systems are idle
	// names that stand for any process listening at an address: their process ids do not matter
	watched map[string]bool
	nodes   int // of a swarm or of chains, otherwise 0
	// trace lists the processes on the nodes' hosts, which may be started and stopped. Nil if
	// there are no nodes.
	trace    func() []traced
	machines []testbed.Machine
	pressure func() float64 // seconds since boot during which a task waited for storage

	mu       sync.Mutex    // for begin, add and end; everything else comes after the last poll
	at       time.Duration // of the last poll
	accounts map[account]*used
	// largest resident set of each node, summed over its processes, in any poll; NaN: none was seen
	nodePeak []float64
	rssPeak  float64
	seen     bool       // a process of the system was observed
	over     bool       // the window has ended
	io       [2]float64 // pressure at the beginning of the window and now

	threadCPU func(pid int) map[int]float64 // CPU seconds of a process's threads
	threads   [2]map[int]float64            // of the link emulator, at the beginning of the window and now
}

// placed is where a process runs: the machine ("" is ours) and the node (−1: none).
type placed struct {
	node    int
	machine string
}

// account identifies one process. A process that replaces it has another account.
type account struct {
	name string
	pid  int
}

// used is the first sample of a process in the window (zero if it started in the window), and
// the last one.
type used struct {
	first, last record.Sample
	born        bool // it started in the window
}

func (u *used) cpu() float64 { return u.last.CPU - u.first.CPU }

// traced is a process on the host of a node.
type traced struct {
	account
	placed
	peak func() float64 // largest resident set over its life
}

func newMeter(s *site, trace func() []testbed.Process) *meter {
	m := &meter{ours: map[string]placed{}, watched: s.watched, machines: s.machines(), threadCPU: testbed.ThreadCPU}
	m.pressure = m.machines[len(m.machines)-1].IOPressure
	for name := range s.watched {
		m.ours[name] = placed{node: -1}
	}
	for _, p := range s.processes() {
		m.ours[p.Name()] = placed{-1, p.Host().Machine().Name()}
	}
	if s.network != nil {
		m.nodes = len(s.hosts)
		m.trace = func() (all []traced) {
			for _, p := range trace() {
				node := slices.IndexFunc(s.hosts, func(h testbed.Host) bool { return h == p.Host() })
				at := placed{node, p.Host().Machine().Name()}
				all = append(all, traced{account{p.Name(), p.ID().PID}, at, p.Peak})
			}
			return all
		}
	}
	return m
}

// begin begins the window with these samples.
func (m *meter) begin(samples []record.Sample) {
	m.mu.Lock()
	m.accounts, m.rssPeak, m.over = nil, 0, false
	m.mu.Unlock()
	m.add(samples)
}

// end ends the window with these samples.
func (m *meter) end(samples []record.Sample) {
	m.add(samples)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lives()
	m.over = true
}

// add takes the samples of one poll.
func (m *meter) add(samples []record.Sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over || len(samples) == 0 || samples[0].End < m.at { // in the last case a poll was overtaken
		return
	}
	m.at = samples[0].End
	if m.trace != nil {
		for _, p := range m.trace() {
			m.ours[p.name] = p.placed
		}
	}
	first := m.accounts == nil
	if first {
		m.accounts, m.nodePeak = map[account]*used{}, slices.Repeat([]float64{math.NaN()}, m.nodes)
	}
	var rss float64
	nodes := map[int]float64{}
	for _, s := range samples {
		of := account{s.Process, s.PID}
		if m.watched[s.Process] {
			of.pid = 0
		}
		u := m.accounts[of]
		if u == nil {
			u = &used{first: s}
			if !first { // it started in the window, which has all of its usage
				u.first, u.born = record.Sample{Start: s.Start, End: s.End}, true
			}
			m.accounts[of] = u
		}
		u.last = s
		if at, ok := m.ours[s.Process]; ok {
			m.seen = true
			rss += s.RSS
			nodes[at.node] += s.RSS
		}
		if machine, emulator := emulatorOn(s); emulator && machine == "" {
			m.threads[1] = m.threadCPU(s.PID)
		}
	}
	m.rssPeak = math.Max(m.rssPeak, rss)
	for node, rss := range nodes {
		m.raise(node, rss)
	}
	if m.io[1] = m.pressure(); first {
		m.io[0], m.threads[0] = m.io[1], m.threads[1]
	}
}

// lives raises the peaks of nodes to the kernel's peaks of the processes that started in the
// window: a poll per second may have missed them.
func (m *meter) lives() {
	if m.trace == nil {
		return
	}
	for _, p := range m.trace() {
		if u := m.accounts[p.account]; u != nil && u.born {
			m.raise(p.node, p.peak())
		}
	}
}

func (m *meter) raise(node int, rss float64) {
	if node >= 0 && (rss > m.nodePeak[node] || math.IsNaN(m.nodePeak[node])) {
		m.nodePeak[node] = rss
	}
}

// edges returns the first and the last sample of a name that has one account.
func (m *meter) edges(name string) (first, last record.Sample) {
	for a, u := range m.accounts {
		if a.name == name {
			return u.first, u.last
		}
	}
	return first, last
}

// totals are the CPU seconds used between the first and the last poll.
type totals struct {
	wall              float64            // seconds
	harness, emulator float64            // on the client's machine
	system, busiest   float64            // of all processes of the system, and of the name that used most
	machines          map[string]float64 // of everything of ours, by machine
	nodes             []scenario.NodeUsage
}

func (m *meter) totals() totals {
	first, self := m.edges(testbed.SelfSample)
	t := totals{wall: (self.End - first.End).Seconds(), harness: self.CPU - first.CPU}
	t.machines = map[string]float64{"": t.harness}
	for i := range m.nodes {
		n := scenario.NodeUsage{CPU: math.NaN(), RSSPeak: math.NaN(), Written: math.NaN()}
		if m.accounts != nil {
			n.RSSPeak = m.nodePeak[i]
		}
		t.nodes = append(t.nodes, n)
	}
	names := map[string]float64{}
	for a, u := range m.accounts {
		at, ours := m.ours[a.name]
		machine, emulator := emulatorOn(u.last)
		switch {
		case ours:
			t.system += u.cpu()
			t.machines[at.machine] += u.cpu()
			if names[a.name] += u.cpu(); names[a.name] > t.busiest {
				t.busiest = names[a.name]
			}
			if at.node >= 0 {
				n := &t.nodes[at.node]
				if math.IsNaN(n.CPU) { // it is its first process
					n.CPU, n.Written = 0, 0
				}
				n.CPU += u.cpu()
				n.Written += u.last.WriteBytes - u.first.WriteBytes
			}
		case emulator:
			if t.machines[machine] += u.cpu(); machine == "" {
				t.emulator += u.cpu()
			}
		}
	}
	return t
}

// usage returns the usage between the first and the last poll, except for that of others.
func (m *meter) usage() scenario.Usage {
	if !m.over {
		m.lives()
	}
	t := m.totals()
	u := scenario.Usage{SystemCPU: math.NaN(), SystemRSSPeak: math.NaN(), OthersBusy: math.NaN(),
		HarnessCPU: math.NaN(), EmulatorCPU: math.NaN(), EmulatorThread: math.NaN(), BoxCPU: math.NaN(),
		BusiestCPU: math.NaN(), IOPressure: math.NaN(), Nodes: t.nodes}
	if m.seen {
		u.SystemCPU, u.SystemRSSPeak = t.system, m.rssPeak
	}
	if t.wall <= 0 {
		return u
	}
	box := t.wall * float64(m.machines[0].CPUs())
	u.HarnessCPU, u.EmulatorCPU = t.harness/box, t.emulator/box
	u.IOPressure = min(1, (m.io[1]-m.io[0])/t.wall) // it is read slightly after the samples
	if m.seen {
		u.BusiestCPU = t.busiest / t.wall
	}
	if t.wall >= leastWindow.Seconds() {
		u.BoxCPU, _ = m.busiestMachine(t)
		for tid, cpu := range m.threads[1] {
			if share := (cpu - m.threads[0][tid]) / t.wall; !(share <= u.EmulatorThread) {
				u.EmulatorThread = share
			}
		}
	}
	return u
}

// busiestMachine returns the machine of which the largest share of CPU was used, and that share.
// The CPU of processes is exact; that of the machine is sampled at ticks, and misses work that
// sleeps during them, like that of the emulator.
func (m *meter) busiestMachine(t totals) (most float64, busiest testbed.Machine) {
	most = math.NaN()
	for _, machine := range m.machines {
		first, last := m.edges(testbed.OfMachine(testbed.BoxSample, machine))
		box := last.CPU - first.CPU
		if last.Process == "" {
			box = math.NaN()
		}
		if machine.CPUs() == 0 || math.IsNaN(box) && machine.Name() != "" { // the machine did not answer
			continue
		}
		share := max(box, t.machines[machine.Name()]) / t.wall / float64(machine.CPUs())
		if !(share <= most) {
			most, busiest = share, machine
		}
	}
	return most, busiest
}

// throttledShare is the largest acceptable share of throttled periods in a trial.
const throttledShare = 0.01

// notes names the busiest machine of a trial and those that were throttled by CPU limits, and reports
// whether there were any of the latter.
func (m *meter) notes() (notes []string, throttled bool) {
	t := m.totals()
	name := func(machine testbed.Machine) string {
		if machine.Name() == "" {
			return "the client's machine"
		}
		return "machine " + machine.Name()
	}
	if len(m.machines) > 1 && t.wall >= leastWindow.Seconds() {
		if share, busiest := m.busiestMachine(t); busiest != nil {
			notes = append(notes, fmt.Sprintf("%s was the busiest: %.0f %% of its CPUs", name(busiest), 100*share))
		}
	}
	for _, machine := range m.machines {
		first, last := m.edges(testbed.OfMachine(testbed.ThrottledSample, machine))
		if share := min(1, (last.CPU-first.CPU)/t.wall); share > throttledShare {
			throttled = true
			notes = append(notes, fmt.Sprintf("a CPU limit held back %s in periods that make %.0f %% of the time",
				name(machine), 100*share))
		}
	}
	return notes, throttled
}

// emulatorOn returns the machine of a link emulator, which is a suffix of its name unless it is ours.
func emulatorOn(s record.Sample) (machine string, ok bool) {
	_, machine, _ = strings.Cut(s.Process, "@")
	return machine, s.Role == testbed.RoleEmulator
}

// measureFootprint measures the memory of a system's processes just before a load, and returns a
// function that adds its peaks during the load. The processes live through many loads, and what one
// leaves behind is in the numbers of the next, so their memory before the first load is recorded, too.
// An attached system has no footprint, because we cannot inspect its processes.
func measureFootprint(s *site) (after func() []record.Detail) {
	var numbers []record.Detail
	add := func(kind string, p testbed.Process, v float64) {
		if !math.IsNaN(v) { // otherwise the kernel does not report it
			numbers = append(numbers, record.Detail{Kind: kind, Name: p.Name(), Value: v})
		}
	}
	var reset []testbed.Process
	for _, p := range s.processes() {
		if m, ok := s.started[p.ID()]; ok {
			add(record.DetailRSSStart, p, m.RSS)
		}
		if p.ResetPeak() == nil { // otherwise the peak would be of an earlier load
			reset = append(reset, p)
		}
	}
	return func() []record.Detail {
		for _, p := range reset {
			add(record.DetailRSSPeak, p, p.Memory().Peak)
		}
		return numbers
	}
}

// byMachine is the CPU used by others on machines, by sample name.
type byMachine map[string]othersUsed

// othersUsed sums the CPU used by others on a machine over the sessions of a trial,
// without the time between them.
type othersUsed struct {
	cpu  float64       // CPU seconds
	wall time.Duration // in which they were used
}

// leastWindow is the shortest window for which the machine's CPU usage is known well
// enough: the kernel counts it in ticks of 10 ms.
const leastWindow = time.Second

// add adds the usage between two polls.
func (b byMachine) add(first, last record.Sample) {
	if wall := last.End - first.End; wall > 0 && !math.IsNaN(last.CPU-first.CPU) {
		sum := b[last.Process]
		b[last.Process] = othersUsed{sum.cpu + last.CPU - first.CPU, sum.wall + wall}
	}
}

// share returns the share of the machine's CPUs; NaN if unknown.
func (o othersUsed) share(cpus int) float64 {
	if o.wall < leastWindow || cpus == 0 {
		return math.NaN()
	}
	return min(1, o.cpu/o.wall.Seconds()/float64(cpus))
}

// worst returns the largest share of a machine's CPUs used by others, and that machine; NaN
// if no share is known.
func (b byMachine) worst(machines []testbed.Machine) (share float64, worst testbed.Machine) {
	share = math.NaN()
	for _, m := range machines {
		if of := b[testbed.OfMachine(testbed.OthersSample, m)].share(m.CPUs()); !(of <= share) && !math.IsNaN(of) {
			share, worst = of, m
		}
	}
	return share, worst
}

// counted is the CPU that others had used since the beginning of the session, at some time.
type counted struct {
	at  time.Time
	cpu float64 // seconds
}

// longestWindow limits how far a window extends before the end of a short trial.
const longestWindow = 10 * time.Second

// recentOthers are the counts at the beginning and end of the latest trials of a session, by
// sample name.
type recentOthers map[string][]counted

// add adds the edges of a trial that began at epoch, and removes counts that are too old.
func (r recentOthers) add(epoch time.Time, edges ...record.Sample) {
	for _, s := range edges {
		if s.Process == "" || math.IsNaN(s.CPU) {
			continue
		}
		now := counted{epoch.Add(s.End), s.CPU}
		r[s.Process] = append(slices.DeleteFunc(r[s.Process], func(c counted) bool {
			return now.at.Sub(c.at) > longestWindow
		}), now)
	}
}

// window returns what others used in the shortest sufficiently long window that ends with the
// last trial. Trials shorter than that are judged by it.
func (r recentOthers) window() byMachine {
	all := byMachine{}
	for name, counts := range r {
		last := counts[len(counts)-1]
		for _, c := range slices.Backward(counts) {
			w := othersUsed{last.cpu - c.cpu, last.at.Sub(c.at)}
			if w.cpu < 0 { // another machine has replaced it
				break
			}
			if w.wall >= leastWindow {
				all[name] = w
				break
			}
		}
	}
	return all
}

// recordedOthers returns what others used in the earlier sessions of a trial, from its
// recorded samples. The counters of others start at 0 in each session, which has another
// process of ours.
func recordedOthers(samples iter.Seq2[record.Sample, error]) (sum byMachine, err error) {
	sum = byMachine{}
	var polled []record.Sample
	last, pid := map[string]record.Sample{}, 0 // of the current session
	for s, err := range samples {
		if err != nil {
			return sum, err
		}
		switch kind, _, _ := strings.Cut(s.Process, "@"); {
		case kind == testbed.OthersSample && !math.IsNaN(s.CPU):
			polled = append(polled, s)
		case s.Process == testbed.SelfSample && len(polled) > 0: // it comes last in a poll
			fell := func(now record.Sample) bool {
				return now.Process == testbed.OthersSample && now.CPU < last[now.Process].CPU
			}
			if s.PID != pid || slices.ContainsFunc(polled, fell) {
				clear(last)
			}
			for _, now := range polled {
				if before, begun := last[now.Process]; begun {
					sum.add(before, now)
				}
				last[now.Process] = now
			}
			polled, pid = polled[:0], s.PID
		}
	}
	return sum, nil
}
