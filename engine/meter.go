package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// meter turns the samples of one trial into what the trial's processes used.
type meter struct {
	system map[string]bool // names of the loaded system's processes; the others idle
	// those of them that stand for whoever listens at an address: their process ids mean nothing
	watched map[string]bool
	nodes   int // of a swarm or of chains; else 0
	// trace lists the processes on the nodes' hosts: they come and go. Nil where
	// there are no nodes.
	trace func() []traced

	mu       sync.Mutex
	at       time.Duration // of the last look
	node     map[string]int
	accounts map[account]*used
	// resident set of each node: the largest sum over its processes that a look has seen; NaN: none was seen
	nodePeak []float64
	rssPeak  float64
	seen     bool // a process of the system was observed
	over     bool // the window has ended
	machines []testbed.Machine
	runsOn   map[string]string // machine of each process of the system, by its sample name; ours is ""
	pressure func() float64    // seconds since boot in which a task waited for storage
	io       [2]float64        // it, when the window began and now

	threadCPU func(pid int) map[int]float64 // CPU seconds of a process's threads
	threads   [2]map[int]float64            // of the link emulator, when the window began and now
}

// account is of one process. Another that takes its place has an account of its own.
type account struct {
	name string
	pid  int
}

// used is what a process had used when the window began, or since it began if that
// was later, and what it has used now.
type used struct {
	first, last record.Sample
	born        bool // in the window
}

// traced is a process on the host of a node.
type traced struct {
	account
	node int
	on   string         // machine
	peak func() float64 // the largest resident set it has had in its life
}

func newMeter(s *site, trace func() []testbed.Process) *meter {
	m := &meter{system: map[string]bool{}, watched: s.watched, machines: s.machines(), threadCPU: testbed.ThreadCPU}
	m.pressure = m.machines[len(m.machines)-1].IOPressure
	for name := range s.watched {
		m.system[name] = true
	}
	m.runsOn = map[string]string{}
	for _, p := range s.processes() {
		m.system[p.Name()], m.runsOn[p.Name()] = true, p.Host().Machine().Name()
	}
	if s.network != nil {
		m.nodes = len(s.hosts)
		m.trace = func() []traced {
			var all []traced
			for _, p := range trace() {
				node := slices.IndexFunc(s.hosts, func(h testbed.Host) bool { return h == p.Host() })
				all = append(all, traced{account{p.Name(), p.ID().PID}, node, p.Host().Machine().Name(), p.Peak})
			}
			return all
		}
	}
	return m
}

// begin forgets what was until now: the window begins with these samples.
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
	if m.over || len(samples) == 0 || samples[0].End < m.at { // the last: two polls have overtaken each other
		return
	}
	m.at = samples[0].End
	first := m.accounts == nil
	m.io[1] = m.pressure()
	if i := slices.IndexFunc(samples, func(s record.Sample) bool {
		machine, emulator := emulatorOn(s)
		return emulator && machine == ""
	}); i >= 0 {
		m.threads[1] = m.threadCPU(samples[i].PID)
	}
	if first {
		m.io[0], m.threads[0] = m.io[1], m.threads[1]
		m.accounts, m.nodePeak = map[account]*used{}, make([]float64, m.nodes)
		for i := range m.nodePeak {
			m.nodePeak[i] = math.NaN()
		}
	}
	m.meet()
	var rss float64
	nodes := map[int]float64{}
	for _, s := range samples {
		of := m.account(s)
		u := m.accounts[of]
		if u == nil {
			u = &used{first: s}
			if !first { // it began since: all it has used is the window's
				u.first, u.born = record.Sample{Start: s.Start, End: s.End}, true
			}
			m.accounts[of] = u
		}
		u.last = s
		if m.system[s.Process] {
			m.seen = true
			rss += s.RSS
			if node, ok := m.node[s.Process]; ok {
				nodes[node] += s.RSS
			}
		}
	}
	m.rssPeak = math.Max(m.rssPeak, rss)
	for node, rss := range nodes {
		m.raise(node, rss)
	}
}

func (m *meter) account(s record.Sample) account {
	if m.watched[s.Process] {
		return account{name: s.Process}
	}
	return account{s.Process, s.PID}
}

// meet learns which processes belong to which node.
func (m *meter) meet() {
	if m.trace == nil {
		return
	}
	m.node = map[string]int{}
	for _, p := range m.trace() {
		m.system[p.name], m.node[p.name], m.runsOn[p.name] = true, p.node, p.on
	}
}

// lives raises the peaks of nodes to those of the processes that began in the
// window: what the kernel has seen of their lives, a look a second may have missed.
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
	if old := m.nodePeak[node]; rss > old || math.IsNaN(old) {
		m.nodePeak[node] = rss
	}
}

// sum adds up what the processes of a name have used in the window; NaN when none
// was seen.
func (m *meter) sum(name string, of func(record.Sample) float64) float64 {
	all, seen := 0.0, false
	for a, u := range m.accounts {
		if a.name == name {
			all, seen = all+of(u.last)-of(u.first), true
		}
	}
	if !seen {
		return math.NaN()
	}
	return all
}

// edges are the first and the last look at what has one name and one account.
func (m *meter) edges(name string) (first, last record.Sample) {
	for a, u := range m.accounts {
		if a.name == name {
			return u.first, u.last
		}
	}
	return first, last
}

func cpuOf(s record.Sample) float64     { return s.CPU }
func readOf(s record.Sample) float64    { return s.ReadBytes }
func writtenOf(s record.Sample) float64 { return s.WriteBytes }

// others are the first and the last poll of what others used, machine after machine.
func (m *meter) others() (edges []record.Sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, machine := range m.machines {
		first, last := m.edges(testbed.OfMachine(testbed.OthersSample, machine))
		edges = append(edges, first, last)
	}
	return edges
}

// usage is what was used between the first and the last poll; others are accounted for apart.
func (m *meter) usage() scenario.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := scenario.Usage{SystemCPU: math.NaN(), SystemRSSPeak: math.NaN(), OthersBusy: math.NaN(),
		HarnessCPU: math.NaN(), EmulatorCPU: math.NaN(), EmulatorThread: math.NaN(), BoxCPU: math.NaN(),
		BusiestCPU: math.NaN(), IOPressure: math.NaN()}
	if m.seen {
		u.SystemCPU, u.SystemRSSPeak = 0, m.rssPeak
	}
	emulator := 0.0
	for a, of := range m.accounts {
		cpu := of.last.CPU - of.first.CPU
		if m.system[a.name] {
			u.SystemCPU += cpu
		} else if machine, ok := emulatorOn(of.last); ok && machine == "" { // of the client's, as the shares below
			emulator += cpu
		}
	}
	if !m.over {
		m.lives()
	}
	for i := range m.nodes {
		u.Nodes = append(u.Nodes, m.nodeUsage(i))
	}
	first, self := m.edges(testbed.SelfSample)
	if wall := (self.End - first.End).Seconds(); wall > 0 {
		box := wall * float64(m.machines[0].CPUs())
		harness := self.CPU - first.CPU
		u.IOPressure = min(1, (m.io[1]-m.io[0])/wall) // its clock is read after the others
		if m.seen {
			u.BusiestCPU = m.busiest() / wall
		}
		u.HarnessCPU, u.EmulatorCPU = harness/box, emulator/box
		if wall >= leastWindow.Seconds() {
			u.BoxCPU, _ = m.busiestMachine(wall, harness+emulator)
			u.EmulatorThread = m.busiestThread() / wall
		}
	}
	return u
}

// busiestMachine is the largest share of a machine's CPUs that anything on it used, and whose. A
// process's account is exact; the machine's is taken at ticks, and misses work that sleeps
// through them, as an emulator's does.
func (m *meter) busiestMachine(wall, harness float64) (most float64, busiest testbed.Machine) {
	ours := map[string]float64{"": harness}
	for a, of := range m.accounts {
		cpu := of.last.CPU - of.first.CPU
		if m.system[a.name] {
			ours[m.runsOn[a.name]] += cpu
		} else if machine, ok := emulatorOn(of.last); ok && machine != "" {
			ours[machine] += cpu
		}
	}
	most = math.NaN()
	for _, machine := range m.machines {
		box := m.sum(testbed.OfMachine(testbed.BoxSample, machine), cpuOf)
		share := max(box, ours[machine.Name()]) / wall / float64(machine.CPUs())
		if math.IsNaN(box) && machine.Name() != "" || machine.CPUs() == 0 { // it could not be asked
			continue
		}
		if !(share <= most) {
			most, busiest = share, machine
		}
	}
	return most, busiest
}

// throttledShare is the share of a trial that periods may make in which a CPU limit held back a machine.
const throttledShare = 0.01

// notes name, of the machines of a trial, the one that was busiest and those that their CPU limits held
// back, and whether there were any.
func (m *meter) notes() (notes []string, throttled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first, self := m.edges(testbed.SelfSample)
	wall := (self.End - first.End).Seconds()
	name := func(machine testbed.Machine) string {
		if machine.Name() == "" {
			return "the client's machine"
		}
		return "machine " + machine.Name()
	}
	if share, busiest := m.busiestMachine(wall, 0); busiest != nil && len(m.machines) > 1 &&
		wall >= leastWindow.Seconds() {
		notes = append(notes, fmt.Sprintf("%s was the busiest: %.0f %% of its CPUs", name(busiest), 100*share))
	}
	for _, machine := range m.machines {
		share := min(1, m.sum(testbed.OfMachine(testbed.ThrottledSample, machine), cpuOf)/wall)
		if share > throttledShare {
			throttled = true
			notes = append(notes, fmt.Sprintf("a CPU limit held back %s in periods that make %.0f %% of the time",
				name(machine), 100*share))
		}
	}
	return notes, throttled
}

// busiest is the most CPU seconds that processes of one name have used.
func (m *meter) busiest() (most float64) {
	for name := range m.system {
		if cpu := m.sum(name, cpuOf); cpu > most { // false for NaN: none was seen
			most = cpu
		}
	}
	return most
}

// busiestThread is the most CPU seconds that a thread of the link emulator has used;
// NaN where none is known.
func (m *meter) busiestThread() float64 {
	most := math.NaN()
	for tid, cpu := range m.threads[1] {
		if used := cpu - m.threads[0][tid]; !(used <= most) {
			most = used
		}
	}
	return most
}

// nodeUsage is what the processes of a node used together; NaN when none was seen.
func (m *meter) nodeUsage(node int) scenario.NodeUsage {
	n := scenario.NodeUsage{CPU: math.NaN(), RSSPeak: math.NaN(), Read: math.NaN(), Written: math.NaN()}
	if m.accounts == nil {
		return n
	}
	n.RSSPeak = m.nodePeak[node]
	for name, of := range m.node {
		cpu := m.sum(name, cpuOf)
		if of != node || math.IsNaN(cpu) { // it has been there before the window
			continue
		}
		if math.IsNaN(n.CPU) {
			n.CPU, n.Read, n.Written = 0, 0, 0
		}
		n.CPU += cpu
		n.Read += m.sum(name, readOf)
		n.Written += m.sum(name, writtenOf)
	}
	return n
}

// emulatorOn is the machine of a link emulator, whose name ends with it unless it is ours.
func emulatorOn(s record.Sample) (machine string, ok bool) {
	_, machine, _ = strings.Cut(s.Process, "@")
	return machine, s.Role == testbed.RoleEmulator
}

// window is how a scenario gives the meter the begin and the end of the time that it
// measures: each takes a look of its own, so that the edges are exact.
type window struct {
	bed   *testbed.Testbed
	epoch time.Time
	meter *meter
	keep  func([]record.Sample)
}

func (w window) begin() {
	samples := w.bed.Poll(w.epoch)
	w.meter.begin(samples)
	w.keep(samples)
}

func (w window) end() {
	samples := w.bed.Poll(w.epoch)
	w.meter.end(samples)
	w.keep(samples)
}
