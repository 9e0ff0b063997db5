package report

import (
	_ "embed"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/record"
)

// collector reads a run directory when Prometheus scrapes it. The report with the medians is kept by
// the follower; each poll is read once. Readings that a poll did not return are absent.
type collector struct {
	*follower
	metrics map[string]metric
	latest  map[int64]record.Poll // by trial
}

// metric is a metric with its unit by Prometheus' conventions. Some are readings of polls that
// mean the same for every system.
type metric struct {
	*prometheus.MetricVec
	labels  int
	reading string // or a prefix, if the rest is the last label; empty: it is not a reading
	lasts   bool   // it counts polls, so its values are kept between scrapes
}

//go:embed prometheus.tsv
var metricTable string

func newCollector(f *follower) *collector {
	c := &collector{follower: f, metrics: map[string]metric{}, latest: map[int64]record.Poll{}}
	for line := range strings.Lines(metricTable) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t") // name, labels, reading, help
		name, labels, help := f[0], strings.Fields(f[1]), f[3]
		m := metric{labels: len(labels), reading: f[2]}
		if strings.HasSuffix(name, "_total") {
			m.MetricVec = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels).MetricVec
			m.lasts = strings.HasPrefix(name, "plimsoll_collect_")
		} else {
			m.MetricVec = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels).MetricVec
		}
		c.metrics[name] = m
	}
	return c
}

// Describe implements prometheus.Collector: metrics are only known when they are collected.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.metrics {
		if !m.lasts {
			m.Reset()
		}
	}
	if err := c.read(); err != nil {
		out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		return
	}
	for _, m := range c.metrics {
		m.MetricVec.Collect(out)
	}
	c.medians(out)
}

// set sets a gauge or adds to a counter; a metric may have fewer labels than are given.
func (c *collector) set(name string, v float64, labels ...string) {
	m := c.metrics[name]
	one, err := m.GetMetricWithLabelValues(labels[:m.labels]...)
	if err != nil {
		return // a label is not UTF-8
	}
	if gauge, is := one.(prometheus.Gauge); is {
		gauge.Set(v)
	} else {
		one.(prometheus.Counter).Add(v)
	}
}

func (c *collector) read() error {
	run, err := record.Open(c.dir)
	if err != nil {
		return err
	}
	defer run.Close()
	trials, _, err := c.update(run)
	if err != nil {
		return err
	}
	for state, n := range map[string]int{"planned": c.report.Run.Planned, "valid": c.report.Run.Valid,
		"invalid": c.report.Run.Invalid, "failed": c.report.Run.Failed, "running": len(goingOn(trials))} {
		c.set("plimsoll_trials", float64(n), state)
	}
	systems := map[string]string{} // by cell
	for _, cell := range c.report.Cells {
		systems[cell.ID] = cell.System
	}
	for _, t := range trials {
		system := systems[t.Cell]
		c.set("plimsoll_received_bytes_total", float64(t.Bytes), system)
		for o, n := range t.Outcomes {
			c.set("plimsoll_operations_total", float64(n), system, o)
		}
		if err := c.readPolls(run, t, system); err != nil {
			return err
		}
	}
	return nil
}

// readPolls reads a trial's polls since the last scrape, and sets the numbers of the latest one while
// the run goes on.
func (c *collector) readPolls(run *record.Reader, t record.Trial, system string) error {
	p, polled := c.latest[t.ID]
	after := int64(-1)
	if polled {
		after = p.Seq
	}
	for poll, err := range run.PollsAfter(t.ID, after) {
		if err != nil {
			return err
		}
		p, polled, c.latest[t.ID] = poll, true, poll
		c.count(system, &poll)
	}
	if !polled {
		return nil
	}
	ended := t.Epoch.Add(p.End)
	c.set("plimsoll_collect_last_poll_timestamp_seconds", float64(ended.UnixMilli())/1000, system)
	if t.State != record.Running || !record.Written(c.dir) { // it was paused or killed
		return nil
	}
	for _, call := range p.Calls {
		c.set("plimsoll_collect_call_duration_seconds", (call.End - call.Start).Seconds(), system, call.Name)
	}
	for _, r := range p.Readings {
		if r.Bad == "" {
			name, label := c.metricOf(r.Name)
			c.set(name, r.Value, system, label)
		}
	}
	return nil
}

// count adds a poll to the counters.
func (c *collector) count(system string, p *record.Poll) {
	c.set("plimsoll_collect_polls_total", 1, system)
	c.set("plimsoll_collect_missed_polls_total", float64(p.Missed), system)
	for _, call := range p.Calls {
		c.set("plimsoll_collect_calls_total", 1, system, call.Name)
		if call.Error != "" {
			c.set("plimsoll_collect_call_errors_total", 1, system, call.Name, collect.Class(call.Error))
		}
	}
	for _, r := range p.Readings {
		if r.Bad != "" {
			c.set("plimsoll_collect_bad_readings_total", 1, system, r.Name)
		}
	}
}

// medians exports the medians of the report, each metric with its own name and unit.
func (c *collector) medians(out chan<- prometheus.Metric) {
	names := map[string]bool{}
	for _, m := range c.report.Frame.Metrics {
		name := medianName(m)
		if _, is := c.metrics[name]; is { // a reading of polls
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

// unitSuffixes are the suffixes of metric names by Prometheus' conventions.
var unitSuffixes = map[string]string{
	"s": "_seconds", "B": "_bytes", "B/s": "_bytes_per_second", "bit/s": "_bits_per_second", "1/s": "_per_second",
	"ratio": "_ratio", "×": "_ratio", "s/GB": "_seconds_per_gigabyte", "s/B": "_seconds_per_byte", "1": "",
}

// medianName returns a metric's name for Prometheus, such as plimsoll_throughput_bytes_per_second.
func medianName(m record.Metric) string {
	suffix, known := unitSuffixes[m.Unit]
	if !known {
		suffix = "_coins" // of a currency
	}
	return "plimsoll_" + strings.TrimSuffix(m.Key, suffix) + suffix
}

// metricOf returns the metric of a reading and its label.
func (c *collector) metricOf(reading string) (name, label string) {
	for name, m := range c.metrics {
		rest, has := strings.CutPrefix(reading, m.reading)
		if m.reading != "" && has && (m.labels > 1 || rest == "") {
			return name, rest
		}
	}
	return "plimsoll_reading", reading
}
