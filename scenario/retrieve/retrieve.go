package retrieve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// Scenario asks how retrieval over HTTP holds up under concurrency. It follows
// "HTTP Retrieval Benchmarks with Boost": whole objects and ranges of them, at
// rising concurrency, over links of known rate and delay, beside a raw baseline
// over the same link.
type Scenario struct{}

func (Scenario) Name() string { return "retrieve" }

// Metrics of a trial. Times of operations are from the intended start, which in
// a closed loop is the start.
func (Scenario) Metrics() []record.Metric {
	return []record.Metric{
		{Key: "success_rate", Name: "success rate", Unit: "ratio", Better: record.Higher,
			Help: "ok operations over ok and failed ones; starved, deadline, in-flight and cancelled count in neither"},
		{Key: "ttfb_p50", Name: "time to first byte, median", Unit: "s", Better: record.Lower,
			Help: "from the intended start to the first body byte; cut-off operations are censored (Kaplan-Meier), " +
				"failed ones left out"},
		{Key: "ttfb_p90", Name: "time to first byte, 90th percentile", Unit: "s", Better: record.Lower,
			Help: "as the median; absent with too few operations"},
		{Key: "ttfb_p99", Name: "time to first byte, 99th percentile", Unit: "s", Better: record.Lower,
			Help: "as the median; absent with too few operations"},
		{Key: "duration_p50", Name: "duration, median", Unit: "s", Better: record.Lower,
			Help: "from the intended start to the last byte; cut-off operations are censored, failed ones left out"},
		{Key: "duration_p90", Name: "duration, 90th percentile", Unit: "s", Better: record.Lower,
			Help: "as the median; absent with too few operations"},
		{Key: "duration_p99", Name: "duration, 99th percentile", Unit: "s", Better: record.Lower,
			Help: "as the median; absent with too few operations"},
		{Key: "throughput", Name: "throughput", Unit: "B/s", Better: record.Higher,
			Help: "file bytes of ok operations, and so far of those in flight at the end, per second of the window"},
		{Key: "ops_rate", Name: "operations per second", Unit: "1/s", Better: record.Higher,
			Help: "ok operations per second of the window"},
		{Key: "offered_rate", Name: "offered load", Unit: "1/s", Better: record.Neither,
			Help: "operations per second that the arrival process asked for; open loop only"},
		{Key: "achieved_share", Name: "achieved share of the offered load", Unit: "ratio", Better: record.Higher,
			Help: "ended operations per second over the offered load; open loop only"},
		{Key: "load_line", Name: "load line", Unit: "B/s", Better: record.Neither,
			Help: "highest throughput that link, round trip and concurrency allow; shaped links, closed loop"},
		{Key: "load_line_share", Name: "share of the load line", Unit: "ratio", Better: record.Higher,
			Help: "throughput over the load line"},
		{Key: "ttfb_line", Name: "load line of the first byte", Unit: "s", Better: record.Neither,
			Help: "round trips before a first byte: one, on fresh connections two, over TLS three; links with a delay"},
		{Key: "ttfb_line_share", Name: "time to first byte, the load line's share", Unit: "ratio",
			Better: record.Higher,
			Help:   "load line of the first byte over its median"},
		{Key: "duration_line", Name: "load line of the duration", Unit: "s", Better: record.Neither,
			Help: "least duration of an operation alone on the link: round trips, bytes at the link's rate, slow " +
				"start of fresh connections"},
		{Key: "duration_line_share", Name: "duration, the load line's share", Unit: "ratio", Better: record.Higher,
			Help: "load line of the duration over its median; below 1 where operations share the link"},
		{Key: "system_cpu_per_gb", Name: "system's CPU per GB", Unit: "s/GB", Better: record.Lower,
			Help: "CPU seconds of the system's processes per 10^9 file bytes received"},
		{Key: "generator_cpu_per_gb", Name: "generator's CPU per GB", Unit: "s/GB", Better: record.Neither,
			Help: "CPU seconds of the load generator per 10^9 file bytes received"},
		{Key: "system_rss_peak", Name: "system's memory, peak", Unit: "B", Better: record.Lower,
			Help: "largest sum of the resident sets of the system's processes"},
		{Key: "generator_rss_peak", Name: "generator's memory, peak", Unit: "B", Better: record.Neither,
			Help: "sum of the largest resident sets of the load generator's processes"},
		scenario.OthersBusy(),
		scenario.BoxCPU(), scenario.EmulatorThread(), scenario.BusiestCPU(), scenario.IOPressure(),
	}
}

// Problems implements Scenario.
func (Scenario) Problems(use experiment.SystemUse, info system.Info, cells []experiment.Cell) []system.Problem {
	if !info.Able("http") {
		return []system.Problem{{What: "its objects cannot be fetched over HTTP, which the scenario retrieve needs"}}
	}
	for _, c := range cells {
		if m := c.Retrieve.Mix; m != nil && (!info.Able("put") || m.Delete > 0 && !info.Able("delete")) {
			return []system.Problem{{What: "it cannot do all operations of retrieve.mix",
				Hint: "a mix needs put for its objects, and delete if it removes any; see plimsoll systems"}}
		}
	}
	dropped := slices.ContainsFunc(cells, func(c experiment.Cell) bool { return c.Retrieve.Receive == "drop" })
	if dropped && scenario.OverTLS(use) {
		return []system.Problem{{
			What: "receive: drop does not work over https, because the kernel cannot discard what has to be decrypted",
			Hint: "use receive: verify for it, for instance under systems with {use: " + use.Use +
				", override: {receive: verify}}, or plain http",
		}}
	}
	return nil
}

// Prepares implements Scenario.
func (Scenario) Prepares(cells []experiment.Cell) (objects, bytes int64) {
	sets := map[string]bool{}
	for _, c := range cells {
		if a := c.Retrieve.Replays(); a != nil && a.Found != nil && c.Data.Objects > 0 {
			return int64(a.Found.Paths), a.Found.Stored
		}
		if data := c.Data; data.Size > 0 && !sets[data.Key()] { // else it has its own objects
			sets[data.Key()] = true
			objects += int64(data.Objects)
			bytes += int64(data.Objects) * int64(data.Size)
		}
	}
	return objects, bytes
}

// Prepare stores the data sets of the cells, or finds the objects that are there.
func (Scenario) Prepare(ctx context.Context, site scenario.Site, cells []experiment.Cell) (_ scenario.Runner,
	err error) {
	nodes := site.Cluster.Nodes()
	if len(nodes) == 0 {
		return nil, fmt.Errorf("%s: the deployment has no node", site.Use.Name)
	}
	server, ok := nodes[0].(system.HTTPServer)
	if !ok {
		return nil, fmt.Errorf("%s: its objects cannot be fetched over HTTP, which the scenario retrieve needs",
			site.Use.Name)
	}
	r := &runner{site: site, node: nodes[0], server: server, copyMost: copyMost,
		ours: scenario.NewCreatedObjects(site.Use), brought: map[copyOf]string{}, sets: map[string][]object{}}
	defer func() {
		if err != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scenario.RemoveTimeout)
			defer cancel()
			err = errors.Join(err, r.Close(ctx))
		}
	}()
	for _, c := range cells {
		set, done := r.sets[c.Data.Key()]
		if !done {
			begun := time.Now()
			if set, err = r.dataSet(ctx, nodes[0], c.Data, cells); err != nil {
				return nil, err
			}
			r.sets[c.Data.Key()] = set
			site.Event("phase", "data ready", fmt.Sprintf("%s: %d objects of %s", site.Use.Name, len(set), c.Data.Size),
				time.Since(begun))
		}
		for _, o := range set {
			if err := o.fits(c.Retrieve.Range); err != nil {
				return nil, fmt.Errorf("%s: %w", site.Use.Name, err)
			}
		}
	}
	return r, nil
}

// Measure computes a trial's metrics; see Metrics for their definitions.
func (Scenario) Measure(in scenario.Measured) map[string]float64 {
	m := map[string]float64{}
	put := scenario.Numbers(m)
	s := in.Summary
	c := s.Counts()
	ofOperations(s, in.Load.Seconds, put)
	if in.Load.OfferedRate > 0 {
		put("offered_rate", in.Load.OfferedRate)
		put("achieved_share", in.Load.AchievedRate/in.Load.OfferedRate)
	}
	loadLines(in, m, put)
	// Bytes of operations that came to nothing cost as much as the others.
	if received := float64(c.Bytes); received > 0 {
		// What the processes used is of the whole trial, warm-up included.
		put("system_cpu_per_gb", in.Usage.SystemCPU/((received+in.Load.Warmed)/1e9))
		put("generator_cpu_per_gb", in.Load.CPU/(received/1e9))
	}
	put("generator_rss_peak", in.Load.RSSPeak)
	scenario.PutUsage(in.Usage, put)
	return m
}

// ofOperations are the metrics of the operations of a trial, all or those of a kind.
func ofOperations(s *record.Summary, seconds float64, put func(string, float64)) {
	c := s.Counts()
	if finished := c.Finished(); finished > 0 {
		put("success_rate", float64(c.Outcomes[record.OK])/float64(finished))
	}
	for _, q := range []struct {
		key string
		q   float64
	}{{"p50", 0.50}, {"p90", 0.90}, {"p99", 0.99}} {
		if enough(s.Count(record.TTFB), q.q) {
			put("ttfb_"+q.key, s.KaplanMeier(record.TTFB, q.q))
		}
		if enough(s.Count(record.Duration), q.q) {
			put("duration_"+q.key, s.KaplanMeier(record.Duration, q.q))
		}
	}
	if seconds > 0 {
		put("throughput", float64(c.OKBytes+c.InFlightBytes)/seconds)
		put("ops_rate", float64(c.Outcomes[record.OK])/seconds)
	}
}

// enough reports whether n operations support quantile q; the median always is
// given, because the trial, not the operation, is what intervals are built on.
func enough(n int64, q float64) bool {
	if q <= 0.5 {
		return n > 0
	}
	ok, _ := stats.CanTell(n, q)
	return ok
}

// retrieveLines are the load lines of the trial, and the shares of what was
// measured in them.
func loadLines(in scenario.Measured, m map[string]float64, put func(string, float64)) {
	p, ok := scenario.PathOf(in.Link)
	if !ok {
		return
	}
	spec := in.Cell.Retrieve
	q := scenario.Request{Size: float64(spec.Range), Fresh: spec.Connections == "fresh", TLS: in.TLS}
	if q.Size == 0 {
		q.Size = float64(in.Cell.Data.Size)
	}
	add := func(key, share string, line float64, of string) {
		if line <= 0 {
			return
		}
		put(key, line)
		if took := m[of]; took > 0 {
			put(share, line/took)
		}
	}
	add("ttfb_line", "ttfb_line_share", p.Wait(q), "ttfb_p50")
	if spec.Replays() != nil || spec.Mix != nil { // of many sizes, or in both directions
		return
	}
	add("duration_line", "duration_line_share", p.Time(q), "duration_p50")
	// In an open loop it is the offered load that bounds the throughput.
	if line := p.LoadLine(spec.Concurrency, q); spec.Arrivals == nil && !math.IsNaN(line) {
		put("load_line", line)
		put("load_line_share", m["throughput"]/line)
	}
}
