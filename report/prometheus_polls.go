package report

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/record"
)

// fresh is how long the latest poll's readings are exported after the time at which
// the next one but two was due: Prometheus itself forgets a value after five minutes.
const fresh = 5 * time.Minute

// pollCollector exports to Prometheus what polls of running trials read, and how the
// polls of all trials went. What a call did not return is absent: a gap. It reads
// each poll once.
type pollCollector struct {
	dir      string
	now      func() time.Time
	gauges   []gauge
	counters map[string]*prometheus.CounterVec
	latest   map[string]*prometheus.GaugeVec // made anew from the latest polls each time

	mu     sync.Mutex
	trials map[int64]*polled
}

// polled is what is known of a trial's polls.
type polled struct {
	latest   record.Poll
	interval time.Duration // between the two latest
}

// Metrics of how the polls themselves go.
const (
	pollsTotal      = "plimsoll_collect_polls_total"
	missedTotal     = "plimsoll_collect_missed_polls_total"
	lastPoll        = "plimsoll_collect_last_poll_timestamp_seconds"
	callSeconds     = "plimsoll_collect_call_duration_seconds"
	callsTotal      = "plimsoll_collect_calls_total"
	callErrorsTotal = "plimsoll_collect_call_errors_total"
	badTotal        = "plimsoll_collect_bad_readings_total"
)

// pollMetric is one of the metrics; each has the label "system" before its own.
type pollMetric struct {
	name, help string
	labels     []string
	counter    bool
}

// pollMetrics are all of them.
func pollMetrics() []pollMetric {
	all := []pollMetric{
		{pollsTotal, "Polls of the system.", nil, true},
		{missedTotal, "Polls of the schedule that were left out, because an earlier one took too long or Plimsoll was stopped.", nil, true},
		{lastPoll, "When the latest poll ended.", nil, false},
		{callSeconds, "Time that a call of the latest poll took, answered or not.", []string{"call"}, false},
		{callsTotal, "Calls of polls, answered or not.", []string{"call"}, true},
		{callErrorsTotal, "Calls that were not answered as they should be, by the class of the reason: each is a gap.",
			[]string{"call", "reason"}, true},
		{badTotal, "Readings that could not be true and were left out.", []string{"reading"}, true},
		{otherReading, "A reading with a name of the system's own.", []string{"name"}, false},
	}
	for _, g := range gauges() {
		m := pollMetric{g.metric, g.help, nil, false}
		if g.label != "" {
			m.labels = []string{g.label}
		}
		all = append(all, m)
	}
	return all
}

func newPollCollector(dir string) *pollCollector {
	c := &pollCollector{
		dir: dir, now: time.Now, gauges: gauges(), trials: map[int64]*polled{},
		counters: map[string]*prometheus.CounterVec{}, latest: map[string]*prometheus.GaugeVec{},
	}
	for _, m := range pollMetrics() {
		labels := append([]string{"system"}, m.labels...)
		if m.counter {
			c.counters[m.name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.name, Help: m.help}, labels)
		} else {
			c.latest[m.name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.name, Help: m.help}, labels)
		}
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *pollCollector) Describe(out chan<- *prometheus.Desc) {
	for _, v := range c.counters {
		v.Describe(out)
	}
	for _, v := range c.latest {
		v.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (c *pollCollector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.latest {
		v.Reset()
	}
	if err := c.read(); err != nil {
		out <- prometheus.NewInvalidMetric(prometheus.NewDesc(pollsTotal, "Polls of the system.", []string{"system"}, nil), err)
		return
	}
	for _, v := range c.counters {
		v.Collect(out)
	}
	for _, v := range c.latest {
		v.Collect(out)
	}
}

// read takes in the polls since the last time.
func (c *pollCollector) read() error {
	run, err := record.Open(c.dir)
	if err != nil {
		return err
	}
	defer run.Close()
	plan, err := analysis.ReadPlan(run)
	if err != nil {
		return err
	}
	systemOf := map[string]string{}
	for _, cell := range plan.Cells {
		systemOf[cell.ID] = cell.System
	}
	trials, err := run.Trials()
	if err != nil {
		return err
	}
	current := map[string]*polled{}
	for _, t := range trials {
		p, system := c.trials[t.ID], systemOf[t.Cell]
		after := int64(-1)
		if p != nil {
			after = p.latest.Seq
		}
		for poll, err := range run.PollsAfter(t.ID, after) {
			if err != nil {
				return err
			}
			if p == nil {
				p = &polled{}
				c.trials[t.ID] = p
			} else {
				p.interval = poll.Start - p.latest.Start
			}
			p.latest = poll
			c.count(system, &poll)
		}
		if p == nil {
			continue
		}
		ended := t.Epoch.Add(p.latest.End)
		c.latest[lastPoll].WithLabelValues(system).Set(float64(ended.UnixMilli()) / 1000)
		if t.State == record.Running && c.now().Sub(ended) < fresh+3*p.interval {
			current[system] = p
		}
	}
	for system, p := range current {
		c.readings(system, &p.latest)
	}
	return nil
}

// count adds a poll to the counters.
func (c *pollCollector) count(system string, p *record.Poll) {
	c.counters[pollsTotal].WithLabelValues(system).Inc()
	c.counters[missedTotal].WithLabelValues(system).Add(float64(p.Missed))
	for _, call := range p.Calls {
		c.counters[callsTotal].WithLabelValues(system, call.Name).Inc()
		if call.Error != "" {
			c.counters[callErrorsTotal].WithLabelValues(system, call.Name, collect.Class(call.Error)).Inc()
		}
	}
	for _, r := range p.Readings {
		if r.Bad != "" {
			c.counters[badTotal].WithLabelValues(system, r.Name).Inc()
		}
	}
}

// readings sets what the latest poll of a running trial read.
func (c *pollCollector) readings(system string, p *record.Poll) {
	for _, call := range p.Calls {
		c.latest[callSeconds].WithLabelValues(system, call.Name).Set((call.End - call.Start).Seconds())
	}
	for _, r := range p.Readings {
		if r.Bad != "" {
			continue
		}
		switch g, label, known := gaugeOf(c.gauges, r.Name); {
		case !known:
			c.latest[otherReading].WithLabelValues(system, r.Name).Set(r.Value)
		case g.label != "":
			c.latest[g.metric].WithLabelValues(system, label).Set(r.Value)
		default:
			c.latest[g.metric].WithLabelValues(system).Set(r.Value)
		}
	}
}
