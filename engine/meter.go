package engine

import (
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// meter turns the samples of one trial into what the trial's processes used.
type meter struct {
	system map[string]bool // names of the loaded system's processes; the others idle
	nodes  [][]string      // of each node of a swarm: names of its processes

	mu      sync.Mutex
	first   map[string]record.Sample // by process
	last    map[string]record.Sample
	before  map[string]float64 // CPU seconds of processes whose place another has taken
	peak    map[string]float64 // resident set
	rssPeak float64
	seen    bool // a process of the system was observed
	over    bool // the window has ended
}

func newMeter(s *site) *meter {
	m := &meter{system: map[string]bool{}}
	for name := range s.watched {
		m.system[name] = true
	}
	for _, p := range s.processes() {
		m.system[p.Name()] = true
	}
	if s.network != nil {
		for _, n := range s.cluster.Nodes() {
			var names []string
			for _, p := range n.Processes() {
				names = append(names, p.Name())
			}
			m.nodes = append(m.nodes, names)
		}
	}
	return m
}

// begin forgets what was until now: the window begins with these samples.
func (m *meter) begin(samples []record.Sample) {
	m.mu.Lock()
	m.first, m.rssPeak, m.over = nil, 0, false
	m.mu.Unlock()
	m.add(samples)
}

// end ends the window with these samples.
func (m *meter) end(samples []record.Sample) {
	m.add(samples)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
}

// add takes the samples of one poll.
func (m *meter) add(samples []record.Sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return
	}
	if m.first == nil {
		m.first, m.last = map[string]record.Sample{}, map[string]record.Sample{}
		m.before, m.peak = map[string]float64{}, map[string]float64{}
	}
	var rss float64
	for _, s := range samples {
		last, known := m.last[s.Process]
		switch {
		case !known:
			m.first[s.Process] = s
		case last.PID != s.PID: // started again under the same name: it begins at 0
			m.before[s.Process] += last.CPU - m.first[s.Process].CPU
			m.first[s.Process] = record.Sample{Start: s.Start, End: s.End}
		}
		m.last[s.Process] = s
		m.peak[s.Process] = max(m.peak[s.Process], s.RSS)
		if m.system[s.Process] {
			m.seen = true
			rss += s.RSS
		}
	}
	m.rssPeak = math.Max(m.rssPeak, rss)
}

// cpu is what the processes of a name have used in the window; NaN when none was
// seen.
func (m *meter) cpu(name string) float64 {
	last, ok := m.last[name]
	if !ok {
		return math.NaN()
	}
	return m.before[name] + last.CPU - m.first[name].CPU
}

// others is what others used between the first and the last poll.
func (m *meter) others() othersUsed {
	m.mu.Lock()
	defer m.mu.Unlock()
	first, last := m.first[testbed.OthersSample], m.last[testbed.OthersSample]
	return othersUsed{last.CPU - first.CPU, last.End - first.End}
}

// usage is what was used between the first and the last poll.
func (m *meter) usage() scenario.Usage {
	others := m.others()
	m.mu.Lock()
	defer m.mu.Unlock()
	u := scenario.Usage{SystemCPU: math.NaN(), SystemRSSPeak: math.NaN(), OthersBusy: others.share(), HarnessCPU: math.NaN(), EmulatorCPU: math.NaN(), BoxCPU: math.NaN()}
	if m.seen {
		u.SystemCPU, u.SystemRSSPeak = 0, m.rssPeak
	}
	emulator := 0.0
	for name, last := range m.last {
		switch {
		case m.system[name]:
			u.SystemCPU += m.cpu(name)
		case last.Role == emulatorRole:
			emulator += m.cpu(name)
		}
	}
	for _, names := range m.nodes {
		u.Nodes = append(u.Nodes, m.node(names))
	}
	self := m.last[testbed.SelfSample]
	if wall := (self.End - m.first[testbed.SelfSample].End).Seconds(); wall > 0 {
		box := wall * float64(runtime.NumCPU())
		harness := m.cpu(testbed.SelfSample)
		// A process's account is exact; the machine's is taken at ticks, and misses work
		// that sleeps through them, as an emulator's does.
		ours := harness + emulator
		if m.seen {
			ours += u.SystemCPU
		}
		u.HarnessCPU, u.EmulatorCPU, u.BoxCPU = harness/box, emulator/box, max(m.cpu(testbed.BoxSample), ours)/box
	}
	return u
}

// node is what the processes of these names used together; NaN when one of them
// was not seen, or when there is none.
func (m *meter) node(names []string) (n scenario.NodeUsage) {
	if len(names) == 0 {
		return scenario.NodeUsage{CPU: math.NaN(), RSSPeak: math.NaN()}
	}
	for _, name := range names {
		peak, seen := m.peak[name]
		if !seen {
			peak = math.NaN()
		}
		n.CPU += m.cpu(name)
		n.RSSPeak += peak
	}
	return n
}

// emulatorRole is that of the link emulator's process.
const emulatorRole = "emulator"

// window is how a scenario tells the meter when the time begins and ends that it
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
