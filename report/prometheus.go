package report

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-project/plimsoll/record"
)

// collector reads a run directory when Prometheus asks. What trials that have
// ended contributed is read once.
type collector struct {
	dir        string
	trials     *prometheus.Desc
	operations *prometheus.Desc
	bytes      *prometheus.Desc
	value      *prometheus.Desc

	mu   sync.Mutex
	kept map[int64]carried
}

// carried is what one trial carried.
type carried struct {
	outcomes map[record.Outcome]int64
	bytes    int64
}

func newCollector(dir string) *collector {
	return &collector{dir: dir, kept: map[int64]carried{},
		trials:     prometheus.NewDesc("plimsoll_trials", "Trials of the plan, warm-up not counted.", []string{"state"}, nil),
		operations: prometheus.NewDesc("plimsoll_operations_total", "Operations of all trials, warm-up included, by outcome.", []string{"system", "outcome"}, nil),
		bytes:      prometheus.NewDesc("plimsoll_received_bytes_total", "Body bytes received in all trials, warm-up included.", []string{"system"}, nil),
		value:      prometheus.NewDesc("plimsoll_cell_median", "Median of a metric over a cell's valid trials, in the metric's base unit.", []string{"cell", "system", "where", "metric"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.trials, c.operations, c.bytes, c.value} {
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
	in, err := gather(run)
	if err != nil {
		return err
	}
	r := compute(in)
	running := 0
	type count struct {
		system  string
		outcome record.Outcome
	}
	operations, bytes := map[count]int64{}, map[string]int64{}
	for _, t := range r.Trials {
		if t.State == record.Running {
			running++
		}
		got, err := c.carried(run, t.Trial)
		if err != nil {
			return err
		}
		bytes[t.Info.System] += got.bytes
		for o, n := range got.outcomes {
			operations[count{t.Info.System, o}] += n
		}
	}
	for state, n := range map[string]int{"planned": r.Run.Planned, "valid": r.Run.Valid, "invalid": r.Run.Invalid, "failed": r.Run.Failed, "running": running} {
		out <- prometheus.MustNewConstMetric(c.trials, prometheus.GaugeValue, float64(n), state)
	}
	for k, n := range operations {
		if n == 0 {
			continue
		}
		out <- prometheus.MustNewConstMetric(c.operations, prometheus.CounterValue, float64(n), k.system, k.outcome.String())
	}
	for system, n := range bytes {
		out <- prometheus.MustNewConstMetric(c.bytes, prometheus.CounterValue, float64(n), system)
	}
	for _, cell := range r.cells() {
		for key, s := range cell.Metrics {
			out <- prometheus.MustNewConstMetric(c.value, prometheus.GaugeValue, float64(s.Median), cell.ID, cell.System, r.shape.where(cell), key)
		}
	}
	return nil
}

// carried is what a trial has carried so far: by its summary when it has ended,
// else by its windows.
func (c *collector) carried(run *record.Reader, t record.Trial) (carried, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if got, ok := c.kept[t.ID]; ok {
		return got, nil
	}
	got := carried{outcomes: map[record.Outcome]int64{}}
	if t.State != record.Running {
		s, err := run.Summary(t.ID)
		if err != nil {
			return carried{}, err
		}
		counts := s.Counts()
		got.bytes = counts.Bytes
		for o, n := range counts.Outcomes {
			got.outcomes[record.Outcome(o)] = n
		}
		c.kept[t.ID] = got
		return got, nil
	}
	ws, err := recent(run, t)
	for _, w := range ws {
		got.bytes += w.Bytes
		for _, o := range record.Outcomes() {
			got.outcomes[o] += w.Outcomes[o]
		}
	}
	return got, err
}

// recent are the windows of a trial that runs; none when they are too many to hold.
func recent(run *record.Reader, t record.Trial) ([]record.Window, error) {
	if time.Since(t.Epoch).Seconds() > maxWindows {
		return nil, nil
	}
	return run.Windows(t.ID)
}
