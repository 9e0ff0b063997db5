package report

import (
	_ "embed"
	"strings"
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

// collector reads a run directory when Prometheus asks. The report, from which the
// medians are, is made anew when trials have ended since; each poll is read once. What
// a call of a poll did not return is absent: a gap.
type collector struct {
	dir      string
	counters map[string]*prometheus.CounterVec
	gauges   map[string]*prometheus.GaugeVec // made anew each time
	readings []gauge

	mu     sync.Mutex
	report *analysis.Result
	ended  int               // trials, in it
	polls  map[int64]*polled // by trial
}

// polled is what is known of a trial's polls.
type polled struct {
	latest   record.Poll
	interval time.Duration // between the two latest
}

// otherReading is the metric of readings with names of the system's own.
const otherReading = "plimsoll_reading"

func newCollector(dir string) *collector {
	c := &collector{dir: dir, counters: map[string]*prometheus.CounterVec{}, gauges: map[string]*prometheus.GaugeVec{},
		polls: map[int64]*polled{}}
	counter := func(name, help string, labels ...string) {
		c.counters[name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) {
		c.gauges[name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	gauge("plimsoll_trials", "Trials of the plan, warm-up not counted.", "state")
	counter("plimsoll_operations_total", "Operations of all trials, warm-up included, by outcome.", "system", "outcome")
	counter("plimsoll_received_bytes_total", "Body bytes received in all trials, warm-up included.", "system")
	counter("plimsoll_collect_polls_total", "Polls of the system.", "system")
	counter("plimsoll_collect_missed_polls_total",
		"Polls left out because an earlier one took too long or Plimsoll was stopped.", "system")
	gauge("plimsoll_collect_last_poll_timestamp_seconds", "When the latest poll ended.", "system")
	gauge("plimsoll_collect_call_duration_seconds", "Time that a call of the latest poll took, answered or not.",
		"system", "call")
	counter("plimsoll_collect_calls_total", "Calls of polls, answered or not.", "system", "call")
	counter("plimsoll_collect_call_errors_total",
		"Calls that were not answered as they should be, by the class of the reason: each is a gap.", "system", "call",
		"reason")
	counter("plimsoll_collect_bad_readings_total", "Readings that could not be true and were left out.", "system",
		"reading")
	gauge(otherReading, "A reading with a name of the system's own.", "system", "name")
	c.readings = gauges()
	for _, g := range c.readings {
		labels := []string{"system"}
		if g.label != "" {
			labels = append(labels, g.label)
		}
		gauge(g.metric, g.help, labels...)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, v := range c.counters {
		v.Describe(out)
	}
	for _, v := range c.gauges {
		v.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.gauges {
		v.Reset()
	}
	if err := c.read(); err != nil {
		out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		return
	}
	for _, v := range c.counters {
		v.Collect(out)
	}
	for _, v := range c.gauges {
		v.Collect(out)
	}
	c.medians(out)
}

func (c *collector) read() error {
	run, err := record.Open(c.dir)
	if err != nil {
		return err
	}
	defer run.Close()
	trials, err := run.Trials()
	if err != nil {
		return err
	}
	if err := c.build(run, trials); err != nil {
		return err
	}
	systems := map[string]string{} // by cell
	for _, cell := range c.report.Cells {
		systems[cell.ID] = cell.System
	}
	c.counters["plimsoll_operations_total"].Reset()
	c.counters["plimsoll_received_bytes_total"].Reset()
	for _, t := range trials {
		system := systems[t.Cell]
		c.counters["plimsoll_received_bytes_total"].WithLabelValues(system).Add(float64(t.Bytes))
		for o, n := range t.Outcomes {
			c.counters["plimsoll_operations_total"].WithLabelValues(system, o).Add(float64(n))
		}
		if err := c.readPolls(run, t, system); err != nil {
			return err
		}
	}
	return nil
}

// build makes the report of the trials that have ended, and counts them.
func (c *collector) build(run *record.Reader, trials []record.Trial) error {
	running := 0
	for _, t := range trials {
		if t.State == record.Running {
			running++
		}
	}
	if ended := len(trials) - running; c.report == nil || c.ended != ended {
		r, err := Build(run)
		if err != nil {
			return err
		}
		c.report, c.ended = r, ended
	}
	r := c.report
	for state, n := range map[string]int{"planned": r.Run.Planned, "valid": r.Run.Valid, "invalid": r.Run.Invalid,
		"failed": r.Run.Failed, "running": running} {
		c.gauges["plimsoll_trials"].WithLabelValues(state).Set(float64(n))
	}
	return nil
}

// readPolls takes in a trial's polls since the last time.
func (c *collector) readPolls(run *record.Reader, t record.Trial, system string) error {
	p, after := c.polls[t.ID], int64(-1)
	if p != nil {
		after = p.latest.Seq
	}
	for poll, err := range run.PollsAfter(t.ID, after) {
		if err != nil {
			return err
		}
		if p == nil {
			p = &polled{}
			c.polls[t.ID] = p
		} else {
			p.interval = poll.Start - p.latest.Start
		}
		p.latest = poll
		c.count(system, &poll)
	}
	if p == nil {
		return nil
	}
	ended := t.Epoch.Add(p.latest.End)
	last := c.gauges["plimsoll_collect_last_poll_timestamp_seconds"].WithLabelValues(system)
	last.Set(float64(ended.UnixMilli()) / 1000)
	if t.State != record.Running || time.Since(ended) >= fresh+3*p.interval {
		return nil
	}
	for _, call := range p.latest.Calls {
		c.gauges["plimsoll_collect_call_duration_seconds"].WithLabelValues(system,
			call.Name).Set((call.End - call.Start).Seconds())
	}
	for _, r := range p.latest.Readings {
		if r.Bad == "" {
			metric, labels := c.gaugeOf(r.Name)
			c.gauges[metric].WithLabelValues(append([]string{system}, labels...)...).Set(r.Value)
		}
	}
	return nil
}

// count adds a poll to the counters.
func (c *collector) count(system string, p *record.Poll) {
	c.counters["plimsoll_collect_polls_total"].WithLabelValues(system).Inc()
	c.counters["plimsoll_collect_missed_polls_total"].WithLabelValues(system).Add(float64(p.Missed))
	for _, call := range p.Calls {
		c.counters["plimsoll_collect_calls_total"].WithLabelValues(system, call.Name).Inc()
		if call.Error != "" {
			c.counters["plimsoll_collect_call_errors_total"].WithLabelValues(system, call.Name,
				collect.Class(call.Error)).Inc()
		}
	}
	for _, r := range p.Readings {
		if r.Bad != "" {
			c.counters["plimsoll_collect_bad_readings_total"].WithLabelValues(system, r.Name).Inc()
		}
	}
}

// medians are those of the report, each metric with a name and unit of its own.
func (c *collector) medians(out chan<- prometheus.Metric) {
	names := map[string]bool{}
	for _, m := range c.report.Frame.Metrics {
		name := medianName(m)
		if c.gauges[name] != nil { // a reading of polls
			name += "_median"
		}
		if names[name] { // absolute in bytes after absolute_bytes
			name = "plimsoll_" + m.Key + "_median"
		}
		names[name] = true
		desc := prometheus.NewDesc(name, m.Name+": median over the cell's valid trials.",
			[]string{"cell", "system", "where"}, nil)
		for _, cell := range c.report.Cells {
			if s, ok := cell.Metrics[m.Key]; ok {
				out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(s.Median),
					cell.ID, cell.System, c.report.Frame.Layout.Where(cell))
			}
		}
	}
}

// unitSuffixes end the names of metrics, by Prometheus' conventions.
var unitSuffixes = map[string]string{
	"s": "_seconds", "B": "_bytes", "B/s": "_bytes_per_second", "bit/s": "_bits_per_second", "1/s": "_per_second",
	"ratio": "_ratio", "×": "_ratio", "s/GB": "_seconds_per_gigabyte", "s/B": "_seconds_per_byte", "1": "",
}

// medianName is a metric's name for Prometheus, as in plimsoll_throughput_bytes_per_second.
func medianName(m record.Metric) string {
	suffix, known := unitSuffixes[m.Unit]
	if !known {
		suffix = "_coins" // of a currency
	}
	return "plimsoll_" + strings.TrimSuffix(m.Key, suffix) + suffix
}

// A gauge is a metric for Prometheus made of what a poll read, of those readings that
// mean the same for every system. Everything else goes to otherReading.
type gauge struct {
	reading string // or a prefix, when label is not empty
	metric  string // with its unit, by Prometheus' conventions
	label   string // what follows the prefix
	help    string
}

//go:embed gauges.tsv
var gaugeTable string

func gauges() (all []gauge) {
	for line := range strings.Lines(gaugeTable) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); f[0] != "reading" { // the head
			all = append(all, gauge{f[0], f[1], f[2], f[3]})
		}
	}
	return all
}

// gaugeOf is the gauge of a reading, and what its label says.
func (c *collector) gaugeOf(reading string) (metric string, labels []string) {
	for _, g := range c.readings {
		rest, has := strings.CutPrefix(reading, g.reading)
		switch {
		case g.label != "" && has:
			return g.metric, []string{rest}
		case g.label == "" && g.reading == reading:
			return g.metric, nil
		}
	}
	return otherReading, []string{reading}
}
