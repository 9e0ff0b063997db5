package report

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/record"
)

// collector reads a run directory when Prometheus scrapes it. The report with the medians is
// rebuilt if trials have ended since, at the pace of the live page; each poll is read once. Readings
// that a poll did not return are absent.
type collector struct {
	dir     string
	metrics []metric

	mu sync.Mutex
	pace
	report *analysis.Result
	ended  int                   // trials, in it
	latest map[int64]record.Poll // by trial
	counts numbers               // of polls, all that were read
}

// metric is a metric with its unit by Prometheus' conventions. Some are readings of polls that
// mean the same for every system.
type metric struct {
	name    string
	labels  []string
	reading string // or a prefix, if the rest is the last label; empty: it is not a reading
	help    string
}

//go:embed prometheus.tsv
var metricTable string

// numbers are values of metrics by their labels.
type numbers map[labelled]float64

type labelled struct {
	metric string
	labels [3]string // unused ones are empty
}

func of(metric string, labels ...string) labelled {
	l := labelled{metric: metric}
	copy(l.labels[:], labels)
	return l
}

func newCollector(dir string) *collector {
	c := &collector{dir: dir, latest: map[int64]record.Poll{}, counts: numbers{}}
	for line := range strings.Lines(metricTable) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t") // name, labels, reading, help
		c.metrics = append(c.metrics, metric{f[0], strings.Fields(f[1]), f[2], f[3]})
	}
	return c
}

// Describe implements prometheus.Collector: metrics are only known when they are collected.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, err := c.read()
	if err != nil {
		out <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		return
	}
	maps.Copy(now, c.counts)
	for _, m := range c.metrics {
		desc, kind := prometheus.NewDesc(m.name, m.help, m.labels, nil), prometheus.GaugeValue
		if strings.HasSuffix(m.name, "_total") {
			kind = prometheus.CounterValue
		}
		for l, v := range now {
			if l.metric == m.name {
				out <- prometheus.MustNewConstMetric(desc, kind, v, l.labels[:len(m.labels)]...)
			}
		}
	}
	c.medians(out)
}

func (c *collector) read() (numbers, error) {
	run, err := record.Open(c.dir)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	trials, err := run.Trials()
	if err != nil {
		return nil, err
	}
	now := numbers{}
	if err := c.trials(run, trials, now); err != nil {
		return nil, err
	}
	systems := map[string]string{} // by cell
	for _, cell := range c.report.Cells {
		systems[cell.ID] = cell.System
	}
	for _, t := range trials {
		system := systems[t.Cell]
		now[of("plimsoll_received_bytes_total", system)] += float64(t.Bytes)
		for o, n := range t.Outcomes {
			now[of("plimsoll_operations_total", system, o)] += float64(n)
		}
		if err := c.readPolls(run, t, system, now); err != nil {
			return nil, err
		}
	}
	return now, nil
}

// trials builds the report of the trials that have ended, and counts them.
func (c *collector) trials(run *record.Reader, trials []record.Trial, now numbers) error {
	running := len(goingOn(trials))
	if ended := len(trials) - running; c.report == nil || c.ended != ended && c.due(time.Now()) {
		r, err := c.build(run)
		if err != nil {
			return err
		}
		c.report, c.ended = r, ended
	}
	r := c.report
	for state, n := range map[string]int{"planned": r.Run.Planned, "valid": r.Run.Valid, "invalid": r.Run.Invalid,
		"failed": r.Run.Failed, "running": running} {
		now[of("plimsoll_trials", state)] = float64(n)
	}
	return nil
}

// readPolls reads a trial's polls since the last scrape, and sets the numbers of the latest one while
// the run goes on.
func (c *collector) readPolls(run *record.Reader, t record.Trial, system string, now numbers) error {
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
	now[of("plimsoll_collect_last_poll_timestamp_seconds", system)] = float64(ended.UnixMilli()) / 1000
	if t.State != record.Running || !record.Written(c.dir) { // it was paused or killed
		return nil
	}
	for _, call := range p.Calls {
		now[of("plimsoll_collect_call_duration_seconds", system, call.Name)] = (call.End - call.Start).Seconds()
	}
	for _, r := range p.Readings {
		if r.Bad == "" {
			name, label := c.metricOf(r.Name)
			now[of(name, system, label)] = r.Value
		}
	}
	return nil
}

// count adds a poll to the counters.
func (c *collector) count(system string, p *record.Poll) {
	c.counts[of("plimsoll_collect_polls_total", system)]++
	c.counts[of("plimsoll_collect_missed_polls_total", system)] += float64(p.Missed)
	for _, call := range p.Calls {
		c.counts[of("plimsoll_collect_calls_total", system, call.Name)]++
		if call.Error != "" {
			c.counts[of("plimsoll_collect_call_errors_total", system, call.Name, collect.Class(call.Error))]++
		}
	}
	for _, r := range p.Readings {
		if r.Bad != "" {
			c.counts[of("plimsoll_collect_bad_readings_total", system, r.Name)]++
		}
	}
}

// medians exports the medians of the report, each metric with its own name and unit.
func (c *collector) medians(out chan<- prometheus.Metric) {
	names := map[string]bool{}
	for _, m := range c.report.Frame.Metrics {
		name := medianName(m)
		if slices.ContainsFunc(c.metrics, func(m metric) bool { return m.name == name }) { // a reading of polls
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
	for _, m := range c.metrics {
		rest, has := strings.CutPrefix(reading, m.reading)
		if m.reading != "" && has && (len(m.labels) > 1 || rest == "") {
			return m.name, rest
		}
	}
	return "plimsoll_reading", reading
}
