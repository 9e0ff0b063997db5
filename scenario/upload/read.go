package upload

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/collect"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// loadTest is one trial of upload or collect.
type loadTest struct {
	*readings
	*objects
	metrics  map[string]float64 // by key
	trial    *analysis.Trial
	up       *experiment.Upload // nil: collect
	coding   coding
	currency string
	price    experiment.Price
	out      analysis.Facts

	files     int64   // stored
	fileBytes float64 // of these files; NaN: unknown
	spending  float64 // money used; NaN: unknown
}

var nan = math.NaN()

// measure computes the metrics from what a trial recorded.
func (l *loadTest) measure(in *scenario.Measured) {
	l.up, l.metrics = in.Cell.Upload, map[string]float64{}
	l.readings = readPolls(in)
	l.objects = readObjects(in, l.readings.end, l.coding.padded)
	put := scenario.Numbers(l.metrics)
	l.readings.measure(put)
	if l.up != nil {
		l.objects.measure(in, put)
		l.files, l.fileBytes = l.accepted().objects, l.accepted().bytes
		l.bandwidth(l.began(), l.lastAt, put)
	} else {
		if n := l.now(system.ReadFiles); !math.IsNaN(n) {
			l.files = int64(n)
		}
		l.fileBytes = l.now(system.ReadFileBytes)
		l.row("file_bandwidth", "", l.values[system.ReadFileBytes].rate().Value)
		l.bandwidth(math.Inf(-1), math.Inf(1), put)
	}
	l.efficient(put)
	put("system_cpu", in.Usage.SystemCPU)
	put("system_rss_peak", in.Usage.SystemRSSPeak)
	scenario.PutMachine(in, put)
}

// bandwidth adds the bandwidth of absolute bytes between two moments (in seconds) and its
// bounds, if the polls determine it well enough.
func (l *loadTest) bandwidth(from, to float64, put func(string, float64)) {
	v := l.values[system.ReadAbsolute]
	value, least, most := collect.Rate(v, from, to)
	put("absolute_bandwidth", value)
	if l.up == nil { // the moments are infinite: all polls count
		p := v.rate()
		least, most = p.Lo, p.Hi
	}
	l.row("absolute_bandwidth_least", "", least)
	l.row("absolute_bandwidth_most", "", most)
}

// Measure computes the metrics of a trial; Metrics defines them.
func (Scenario) Measure(in scenario.Measured) map[string]float64 {
	l := loadTest{trial: &analysis.Trial{}}
	l.measure(&in)
	return l.metrics
}

// read returns what the polls, jobs and events of a trial show beyond its metrics. It computes
// the metrics that the trial does not have yet.
func read(t *analysis.Trial, facts *record.Reader) (analysis.Facts, error) {
	if t.State == record.Skipped {
		return analysis.Facts{}, nil
	}
	in, err := scenario.ReadFacts(facts, t.Trial, t.Info.Plan)
	if err != nil {
		return analysis.Facts{}, err
	}
	l := &loadTest{trial: t, spending: nan}
	l.systemOf(facts)
	l.measure(&in)
	maps.Copy(l.metrics, t.Metrics) // recorded metrics take precedence
	l.emit()
	l.money()
	l.invariants()
	l.series()
	l.define()
	err = l.sessions(in.Events, facts)
	return l.out, cmp.Or(err, in.Err())
}

// systemOf fills in the stated price, and what the trial's system reported about itself: its
// currency and its coding.
func (l *loadTest) systemOf(facts *record.Reader) {
	text := ""
	switch cell := l.trial.Info.Plan; {
	case cell.Upload != nil:
		text = string(cell.Upload.Price)
	case cell.Collect != nil:
		text = string(cell.Collect.Price)
	}
	l.price, _ = experiment.ParsePrice(text) // fails if none is stated
	said := analysis.AboutSystem(facts.Meta(), l.trial.Info.System)
	l.currency, l.coding = cmp.Or(said["currency"], "units"), codingOf(said)
}

// codingOf derives a system's coding from its identity: siad's, renterd's or Tahoe-LAFS's.
func codingOf(said map[string]string) (c coding) {
	c.sector, _ = strconv.ParseInt(said["sector"], 10, 64)
	if n, _ := fmt.Sscanf(said["redundancy"], "%d data + %d parity", &c.needed, &c.servers); n == 2 {
		c.servers += c.needed
	} else { // if this fails, servers is 0
		_, _ = fmt.Sscanf(cmp.Or(said["redundancy"], said["shares"]), "%d of %d", &c.needed, &c.servers)
	}
	if c.needed <= 0 || c.servers < c.needed {
		return coding{}
	}
	return c
}

// coding is how a system spreads an object over its servers; zero: unknown.
type coding struct {
	sector  int64 // pieces are rounded up to a multiple of it; 0: no rounding is known
	needed  int64 // pieces needed to rebuild the object
	servers int64 // pieces in all
}

// padded returns the bytes that one copy of an object takes in whole sectors.
func (c coding) padded(size int64) int64 {
	unit := c.sector * c.needed
	if unit == 0 {
		return size
	}
	return max(1, (size+unit-1)/unit) * unit
}

// spread returns the absolute bytes that the client makes of each file byte.
func (c coding) spread() float64 {
	if c.needed == 0 {
		return 1
	}
	return float64(c.servers) / float64(c.needed)
}

// now returns the last value of a reading, or NaN if there is none.
func (l *loadTest) now(name string) float64 { return l.values[name].upTo(math.Inf(1)) }

// empty reports whether readings were zero at the first poll or came only from the test's own
// objects.
func (l *loadTest) empty(names ...string) bool {
	if l.up == nil {
		return true // collect watches whatever is there
	}
	for _, name := range names {
		v := l.values[name]
		if len(v) == 0 || v[0].Value == 0 {
			continue
		}
		ours := float64(l.by(v[0].End).objects + int64(l.up.Concurrency))
		if l.began() > v[0].End || !(l.values[system.ReadFiles].at(v[0].Start) <= ours) {
			return false
		}
	}
	return true
}

// efficient adds the storage efficiency and its parts: file bytes on the servers / absolute
// bytes = padding / copies. Accepted bytes that are still in buffers do not count.
func (l *loadTest) efficient(put func(string, float64)) {
	v := l.values[system.ReadAbsolute]
	if len(v) == 0 {
		return
	}
	first, last := v[0], v[len(v)-1]
	if l.up == nil {
		there := l.values[system.ReadFileBytes].upTo(last.Start)
		l.row("absolute", "", last.Value)
		l.row("storage_efficiency", "", there/last.Value)
		l.row("absolute_per_file", "", last.Value/float64(l.files))
		return
	}
	absolute, before := last.Value, stored{}
	fresh := l.empty(system.ReadFiles, system.ReadFileBytes, system.ReadAbsolute)
	if !fresh {
		absolute, before = last.Value-first.Value, l.by(mid(first))
	}
	l.row("absolute", "", absolute)
	lo, hi := l.by(last.Start).bytes-before.bytes, l.by(last.End).bytes-before.bytes
	// File bytes that the system reports in the same poll as the absolute bytes are better: they
	// count, less those in buffers. A list is summed up at another moment and does not qualify.
	reported := func(poll collect.Reported) float64 {
		buffered := l.values["buffered_bytes"].upTo(poll.Start)
		if math.IsNaN(buffered) {
			buffered = 0
		}
		return l.values[system.ReadFileBytes].at(poll.Start) - buffered
	}
	if v := reported(last); !math.IsNaN(v) && !l.calls["list"] {
		if was := reported(first); !fresh && !math.IsNaN(was) {
			v -= was
		}
		lo, hi = min(v, lo), min(v, hi)
	}
	if !(absolute >= 0 && hi > 0) { // sectors may be taken before anything is accepted
		return
	}
	there, now := (lo+hi)/2, l.by(last.End).less(before)
	share := min(1, there/now.bytes) // of the accepted bytes that are on servers
	put("absolute_per_file", absolute/(float64(now.objects)*share))
	put("expansion", absolute/there)
	put("storage_efficiency", there/absolute)
	if l.coding.sector > 0 && absolute < 0.99*now.rounded*share {
		l.coding = coding{} // another build or packed objects: the rounding is unknown
	}
	if l.coding.needed > 0 && now.rounded > 0 && now.bytes > 0 {
		padding := now.bytes / now.rounded
		l.row("padding", "", padding)
		l.row("copies", "", padding/(there/absolute))
		l.row("efficiency_line", "", padding/l.coding.spread())
	}
}

// row adds a number of the trial, unless it is unknown, not supported or already recorded.
func (l *loadTest) row(metric, entity string, v float64) {
	if _, recorded := l.trial.Metrics[metric]; math.IsNaN(v) || math.IsInf(v, 0) || recorded && entity == "" ||
		!analysis.Supported(metric, l.trial.Trial) {
		return
	}
	l.out.Rows = append(l.out.Rows, analysis.Row{Trial: l.trial, Entity: entity, Metric: metric, Value: v})
}

// emit adds the metrics, and further numbers of objects and polls.
func (l *loadTest) emit() {
	for _, key := range slices.Sorted(maps.Keys(l.metrics)) {
		l.row(key, "", l.metrics[key])
	}
	l.row("files", "", float64(l.files))
	l.row("stored_bytes", "", l.fileBytes)
	l.row("contracts", "", l.now(system.ReadContracts))
	l.row("redundancy_mean", "", l.now(system.ReadRedundancyMean))
	l.row("below_redundancy", "", l.now(system.ReadBelow))
	for _, k := range l.trouble {
		l.span(k.what, k.subject, k.from, k.to, fmt.Sprintf("%s, %d times; the first: %s", k.subject, k.count,
			k.detail))
	}
	storing := l.lastAt - l.began()
	if l.up != nil && storing > 0 {
		l.row("storing", "", storing)
	}
	// The load line is the rate of the link divided by the redundancy that the client makes.
	line, known := l.metrics["bandwidth_line"]
	if line /= l.coding.spread(); !known {
		return
	}
	l.row("load_line", "", line)
	if l.fullAt > l.began() {
		l.row("load_line_share", "", l.full/(l.fullAt-l.began())/line)
	} else if share := l.fileBytes / storing / line; share <= 1 { // accepted bytes need not have crossed the link
		l.row("load_line_share", "", share)
	}
}

// span adds a span to the trial's life.
func (l *loadTest) span(kind, entity string, from, to float64, note string) {
	l.out.Spans = append(l.out.Spans, analysis.Span{Trial: l.trial, Entity: entity, Kind: kind, From: from, To: to,
		Note: note})
}

// Kinds of spans in a load test's life.
const (
	sessionSpan = "session"
	endedMark   = "ended"
	crashMark   = "crash"
	faultMark   = "fault"
	killed      = "killed"
)

// sessions adds the sessions of the trial, crashes, faults and its end. A killed session ends
// at the last thing that it recorded.
func (l *loadTest) sessions(events iter.Seq[record.Event], facts *record.Reader) error {
	begun, left := 0.0, -1.0
	n, crashes := 1, 0
	add := func(kind string, from, to float64, note string) { l.span(kind, "", max(0, from), max(0, to), note) }
	for e := range events {
		since := e.At.Sub(l.trial.Epoch)
		at := since.Seconds()
		switch {
		case e.Kind == "session" && e.What == "paused":
			left = at
		case e.Kind == "session" && e.What == "continued":
			note := "paused"
			if left < 0 {
				last, err := facts.Latest(l.trial.ID, since)
				if err != nil {
					return err
				}
				left, note = max(begun, last.Seconds()), killed
			}
			add(sessionSpan, begun, left, note)
			n, begun, left = n+1, at, -1
		case e.Kind == "mark" && e.What == "daemon died":
			crashes++
			add(crashMark, at, at, e.What+": "+e.Detail)
		case e.Kind == "fault", e.Kind == "mark":
			add(faultMark, at, at, strings.TrimSuffix(e.What+": "+e.Detail, ": "))
		case e.Kind == "phase" && e.What == "trial ended":
			add(endedMark, at, at, e.Detail)
		}
	}
	seconds := max(l.trial.Seconds, l.latest)
	end := seconds
	if left >= 0 {
		end = left
	}
	add(sessionSpan, begun, max(begun, end), "")
	l.row("duration", "", seconds)
	l.row("sessions", "", float64(n))
	l.row("crashes", "", float64(crashes))
	return nil
}

// mostPoints limits the points of a series.
const mostPoints = 200

// overObjects is the x-axis of series over objects.
const overObjects = "objects stored"

func (l *loadTest) addSeries(metric, over string, points []analysis.Point) {
	if len(points) > 1 {
		l.out.Series = append(l.out.Series, analysis.Series{Trial: l.trial, Metric: metric, Over: over, Points: points})
	}
}

// series adds the values that change within the trial.
func (l *loadTest) series() {
	absolute, bytes := l.values[system.ReadAbsolute], l.values[system.ReadFileBytes]
	l.addSeries("api_latency", "", l.latency.points(series.around))
	l.addSeries("absolute", "", absolute.points(series.level))
	l.addSeries("absolute_bandwidth", "", absolute.points(series.rate))
	l.addSeries("money_used", "", l.usedByPoll().points(series.level))
	if l.up != nil {
		l.ofObjects()
		return
	}
	l.addSeries("files", "", l.values[system.ReadFiles].points(series.level))
	l.addSeries("stored_bytes", "", bytes.points(series.level))
	l.addSeries("file_bandwidth", "", bytes.points(series.rate))
}

// usedByPoll returns the money used up by the time of each poll. If the system's totals all
// belong to the test, money used before the first poll is included.
func (l *loadTest) usedByPoll() series {
	all := slices.Clone(l.values[moneyUsed])
	if before := l.spending - l.now(moneyUsed); !math.IsNaN(before) {
		for i := range all {
			all[i].Value += before
		}
	}
	return all
}

// ofObjects adds the series of objects. Each point covers an equal number of objects.
func (l *loadTest) ofObjects() {
	all := map[string][]analysis.Point{}
	add := func(metric string, at, v float64) {
		if !math.IsNaN(v) {
			all[metric] = append(all[metric], analysis.Point{At: at, Value: v, Lo: nan, Hi: nan})
		}
	}
	before, n := l.began(), len(l.all)
	points := min(n, mostPoints)
	for i := range points {
		from, to := i*n/points, (i+1)*n/points
		part, end, sum := l.all[from:to], l.all[to-1].at, l.upTo(to)
		count := float64(sum.objects)
		add("files", end, count)
		add("stored_bytes", end, sum.bytes)
		if came := sum.bytes - l.upTo(from).bytes; end > before {
			add("file_bandwidth", end, came/(end-before))
			add("throughput", count, came/(end-before))
		}
		var took, settled []float64
		for _, x := range part {
			took, settled = append(took, x.took), append(settled, x.settled)
		}
		add("accept_time", count, stats.Median(slices.DeleteFunc(took, math.IsNaN)))
		add("durable_time", count, stats.Median(slices.DeleteFunc(settled, math.IsNaN)))
		before = end
	}
	for _, metric := range []string{"files", "stored_bytes", "file_bandwidth"} {
		l.addSeries(metric, "", all[metric])
	}
	for _, metric := range []string{"throughput", "accept_time", "durable_time"} {
		l.addSeries(metric, overObjects, all[metric])
	}
}

// define adds the definitions of rows and series that the run does not define.
func (l *loadTest) define() {
	l.out.Metrics = append(l.out.Metrics, scenario.Definitions(definitions, "derived", "servers")...)
	if len(l.readings.last) == 0 {
		return // without money, another system of the run determines the unit
	}
	for _, m := range scenario.Definitions(definitions, "money") {
		m.Unit = l.currency
		l.out.Metrics = append(l.out.Metrics, m)
		if l.price.Each != nil {
			m.Key, m.Name, m.Unit = m.Key+priced, m.Name+", at the stated price", l.price.Currency
			l.out.Metrics = append(l.out.Metrics, m)
		}
	}
}
