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
// each poll once, and remembers sums.
type pollCollector struct {
	dir    string
	now    func() time.Time
	gauges []gauge
	descs  map[string]*prometheus.Desc

	mu     sync.Mutex
	trials map[int64]*polled
}

// polled is what is known of a trial's polls.
type polled struct {
	polls, missed int64
	calls         map[string]*called
	bad           map[string]int64 // by reading
	latest        record.Poll
	interval      time.Duration // between the two latest
}

type called struct {
	n      int64
	errors map[string]int64 // by class
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
}

// pollMetrics are all of them.
func pollMetrics() []pollMetric {
	all := []pollMetric{
		{pollsTotal, "Polls of the system.", nil},
		{missedTotal, "Polls of the schedule that were left out, because an earlier one took too long or Plimsoll was stopped.", nil},
		{lastPoll, "When the latest poll ended.", nil},
		{callSeconds, "Time that a call of the latest poll took, answered or not.", []string{"call"}},
		{callsTotal, "Calls of polls, answered or not.", []string{"call"}},
		{callErrorsTotal, "Calls that were not answered as they should be, by the class of the reason: each is a gap.", []string{"call", "reason"}},
		{badTotal, "Readings that could not be true and were left out.", []string{"reading"}},
		{otherReading, "A reading with a name of the system's own.", []string{"name"}},
	}
	for _, g := range gauges() {
		m := pollMetric{g.metric, g.help, nil}
		if g.label != "" {
			m.labels = []string{g.label}
		}
		all = append(all, m)
	}
	return all
}

func newPollCollector(dir string) *pollCollector {
	c := &pollCollector{dir: dir, now: time.Now, gauges: gauges(), descs: map[string]*prometheus.Desc{}, trials: map[int64]*polled{}}
	for _, m := range pollMetrics() {
		c.descs[m.name] = prometheus.NewDesc(m.name, m.help, append([]string{"system"}, m.labels...), nil)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *pollCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *pollCollector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.collect(out); err != nil {
		out <- prometheus.NewInvalidMetric(c.descs[pollsTotal], err)
	}
}

func (c *pollCollector) collect(out chan<- prometheus.Metric) error {
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
	sums, current, ended := map[string]*polled{}, map[string]*polled{}, map[string]time.Time{}
	for _, t := range trials {
		p := c.trials[t.ID]
		if p == nil {
			p = newPolled()
			c.trials[t.ID] = p
		}
		if err := p.read(run, t.ID); err != nil {
			return err
		}
		if p.polls == 0 {
			continue
		}
		name := systemOf[t.Cell]
		if sums[name] == nil {
			sums[name] = newPolled()
		}
		sums[name].add(p)
		age := c.now().Sub(t.Epoch.Add(p.latest.End))
		if t.State == record.Running && age < fresh+3*p.interval {
			current[name] = p
		}
		ended[name] = t.Epoch.Add(p.latest.End)
	}
	for name, at := range ended {
		c.emit(out, prometheus.GaugeValue, lastPoll, float64(at.UnixMilli())/1000, name)
	}
	for name, p := range sums {
		c.counters(out, name, p)
	}
	for name, p := range current {
		c.readings(out, name, p)
	}
	return nil
}

func (c *pollCollector) emit(out chan<- prometheus.Metric, kind prometheus.ValueType, metric string, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(c.descs[metric], kind, value, labels...)
}

func (c *pollCollector) counters(out chan<- prometheus.Metric, name string, p *polled) {
	c.emit(out, prometheus.CounterValue, pollsTotal, float64(p.polls), name)
	c.emit(out, prometheus.CounterValue, missedTotal, float64(p.missed), name)
	for call, k := range p.calls {
		c.emit(out, prometheus.CounterValue, callsTotal, float64(k.n), name, call)
		for reason, n := range k.errors {
			c.emit(out, prometheus.CounterValue, callErrorsTotal, float64(n), name, call, reason)
		}
	}
	for reading, n := range p.bad {
		c.emit(out, prometheus.CounterValue, badTotal, float64(n), name, reading)
	}
}

func (c *pollCollector) readings(out chan<- prometheus.Metric, name string, p *polled) {
	for _, call := range p.latest.Calls {
		c.emit(out, prometheus.GaugeValue, callSeconds, (call.End - call.Start).Seconds(), name, call.Name)
	}
	for _, r := range p.latest.Readings {
		if r.Bad != "" {
			continue
		}
		switch g, label, known := gaugeOf(c.gauges, r.Name); {
		case !known:
			c.emit(out, prometheus.GaugeValue, otherReading, r.Value, name, r.Name)
		case g.label != "":
			c.emit(out, prometheus.GaugeValue, g.metric, r.Value, name, label)
		default:
			c.emit(out, prometheus.GaugeValue, g.metric, r.Value, name)
		}
	}
}

func newPolled() *polled { return &polled{calls: map[string]*called{}, bad: map[string]int64{}} }

func (p *polled) call(name string) *called {
	if p.calls[name] == nil {
		p.calls[name] = &called{errors: map[string]int64{}}
	}
	return p.calls[name]
}

// read adds the trial's polls since the last time.
func (p *polled) read(run *record.Reader, trial int64) error {
	after := int64(-1)
	if p.polls > 0 {
		after = p.latest.Seq
	}
	for poll, err := range run.PollsAfter(trial, after) {
		if err != nil {
			return err
		}
		if p.polls > 0 {
			p.interval = poll.Start - p.latest.Start
		}
		p.polls++
		p.missed += int64(poll.Missed)
		for _, call := range poll.Calls {
			k := p.call(call.Name)
			k.n++
			if call.Error != "" {
				k.errors[collect.Class(call.Error)]++
			}
		}
		for _, r := range poll.Readings {
			if r.Bad != "" {
				p.bad[r.Name]++
			}
		}
		p.latest = poll
	}
	return nil
}

// add adds another trial of the same system.
func (p *polled) add(o *polled) {
	p.polls += o.polls
	p.missed += o.missed
	for name, k := range o.calls {
		sum := p.call(name)
		sum.n += k.n
		for reason, n := range k.errors {
			sum.errors[reason] += n
		}
	}
	for reading, n := range o.bad {
		p.bad[reading] += n
	}
}
