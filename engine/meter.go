package engine

import (
	"math"
	"sync"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
)

// meter turns the samples of one trial into what the trial's processes used.
type meter struct {
	system map[string]bool // names of the loaded system's processes; the others idle

	mu      sync.Mutex
	first   map[string]record.Sample // by process
	last    map[string]record.Sample
	rssPeak float64
	seen    bool // a process of the system was observed
}

func newMeter(s *site) *meter {
	m := &meter{system: map[string]bool{}}
	for name := range s.watched {
		m.system[name] = true
	}
	for _, p := range s.processes() {
		m.system[p.Name()] = true
	}
	return m
}

// add takes the samples of one poll.
func (m *meter) add(samples []record.Sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.first == nil {
		m.first, m.last = map[string]record.Sample{}, map[string]record.Sample{}
	}
	var rss float64
	for _, s := range samples {
		if _, known := m.first[s.Process]; !known {
			m.first[s.Process] = s
		}
		m.last[s.Process] = s
		if m.system[s.Process] {
			m.seen = true
			rss += s.RSS
		}
	}
	m.rssPeak = math.Max(m.rssPeak, rss)
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
	u := scenario.Usage{SystemCPU: math.NaN(), SystemRSSPeak: math.NaN(), OthersBusy: others.share()}
	if m.seen {
		u.SystemCPU, u.SystemRSSPeak = 0, m.rssPeak
	}
	for name, last := range m.last {
		first := m.first[name]
		if m.system[name] {
			u.SystemCPU += last.CPU - first.CPU
		}
	}
	return u
}
