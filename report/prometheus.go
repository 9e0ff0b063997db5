package report

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
)

// collector reads a run directory when Prometheus asks. The report, from which
// the medians are, is made anew when trials have ended since.
type collector struct {
	dir        string
	trials     *prometheus.Desc
	operations *prometheus.Desc
	bytes      *prometheus.Desc

	mu     sync.Mutex
	report *analysis.Result
	ended  int // trials, in it
}

func newCollector(dir string) *collector {
	return &collector{dir: dir,
		trials:     prometheus.NewDesc("plimsoll_trials", "Trials of the plan, warm-up not counted.", []string{"state"}, nil),
		operations: prometheus.NewDesc("plimsoll_operations_total", "Operations of all trials, warm-up included, by outcome.", []string{"system", "outcome"}, nil),
		bytes:      prometheus.NewDesc("plimsoll_received_bytes_total", "Body bytes received in all trials, warm-up included.", []string{"system"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.trials, c.operations, c.bytes} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	if err := c.collect(out); err != nil {
		out <- prometheus.NewInvalidMetric(c.trials, err)
	}
}

func (c *collector) collect(out chan<- prometheus.Metric) error {
	run, err := record.Open(c.dir)
	if err != nil {
		return err
	}
	defer run.Close()
	trials, err := run.Trials()
	if err != nil {
		return err
	}
	r, err := c.look(run, trials)
	if err != nil {
		return err
	}
	running := 0
	type count struct {
		system, outcome string
	}
	operations, bytes := map[count]int64{}, map[string]int64{}
	systems := map[string]string{}
	for _, cell := range r.Cells {
		systems[cell.ID] = cell.System
	}
	for _, t := range trials {
		if t.State == record.Running {
			running++
		}
		bytes[systems[t.Cell]] += t.Bytes
		for o, n := range t.Outcomes {
			operations[count{systems[t.Cell], o}] += n
		}
	}
	for state, n := range map[string]int{"planned": r.Run.Planned, "valid": r.Run.Valid, "invalid": r.Run.Invalid, "failed": r.Run.Failed, "running": running} {
		out <- prometheus.MustNewConstMetric(c.trials, prometheus.GaugeValue, float64(n), state)
	}
	for k, n := range operations {
		out <- prometheus.MustNewConstMetric(c.operations, prometheus.CounterValue, float64(n), k.system, k.outcome)
	}
	for system, n := range bytes {
		out <- prometheus.MustNewConstMetric(c.bytes, prometheus.CounterValue, float64(n), system)
	}
	polled, names := map[string]bool{}, map[string]bool{}
	for _, p := range pollMetrics() {
		polled[p.name] = true
	}
	for _, m := range r.Frame.Metrics {
		name := medianName(m)
		if polled[name] { // a reading of polls
			name += "_median"
		}
		if names[name] { // absolute in bytes after absolute_bytes
			name = "plimsoll_" + m.Key + "_median"
		}
		names[name] = true
		help := m.Name + ": median over the cell's valid trials."
		desc := prometheus.NewDesc(name, help, []string{"cell", "system", "where"}, nil)
		for _, cell := range r.Cells {
			if s, ok := cell.Metrics[m.Key]; ok {
				out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(s.Median),
					cell.ID, cell.System, r.Frame.Layout.Where(cell))
			}
		}
	}
	return nil
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

// look is the report of the trials that have ended.
func (c *collector) look(run *record.Reader, trials []record.Trial) (*analysis.Result, error) {
	ended := 0
	for _, t := range trials {
		if t.State != record.Running {
			ended++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.report == nil || c.ended != ended {
		r, err := Build(run)
		if err != nil {
			return nil, err
		}
		c.report, c.ended = r, ended
	}
	return c.report, nil
}
