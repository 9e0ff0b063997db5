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
	"github.com/plimsoll-project/plimsoll/system"
)

// loadTest is one trial of upload or collect.
type loadTest struct {
	*readings
	*objects
	metrics  map[string]float64 // by their keys
	trial    *analysis.Trial
	up       *experiment.Upload // nil: collect
	coding   coding
	currency string
	price    experiment.Price
	out      analysis.Facts

	files     int64   // stored
	fileBytes float64 // of them; NaN: not known
	fileRate  float64
	absolute  float64 // bytes on the servers since the test began
	used      float64 // money; NaN: not known
}

var nan = math.NaN()

// measure computes what follows from what a trial recorded.
func (l *loadTest) measure(in *scenario.Measured) {
	l.up = in.Cell.Upload
	settle := 0.0
	if l.up != nil {
		settle = l.up.Settle.Seconds()
	}
	l.readings = readPolls(in)
	l.objects = readObjects(in, settle, l.moments(), l.coding.padded)
	l.metrics = l.readings.metrics()
	put := scenario.Numbers(l.metrics)
	if l.up != nil {
		l.objects.metrics(in, l.readings, l.metrics)
	}
	l.stored()
	l.efficient(put)
	put("system_cpu", in.Usage.SystemCPU)
	scenario.PutUsage(in.Usage, put)
}

// Measure computes a trial's metrics; see Metrics for their definitions.
func (Scenario) Measure(in scenario.Measured) map[string]float64 {
	l := loadTest{trial: &analysis.Trial{}}
	l.measure(&in)
	return l.metrics
}

// Measure computes a trial's metrics; see Metrics for their definitions.
func (Collect) Measure(in scenario.Measured) map[string]float64 { return Scenario{}.Measure(in) }

// read adds what polls, jobs and events say of a trial beyond its metrics and, of one that
// has none yet, these.
func read(t *analysis.Trial, facts *record.Reader) (analysis.Facts, error) {
	if t.State == record.Skipped {
		return analysis.Facts{}, nil
	}
	l, err := load(t, facts)
	if err != nil {
		return analysis.Facts{}, err
	}
	return l.out, nil
}

func load(t *analysis.Trial, facts *record.Reader) (*loadTest, error) {
	in, err := scenario.ReadFacts(facts, t.Trial, t.Info.Plan)
	if err != nil {
		return nil, err
	}
	l := &loadTest{trial: t, used: nan}
	if err := l.systemOf(facts); err != nil {
		return nil, err
	}
	l.measure(&in)
	maps.Copy(l.metrics, t.Metrics) // as it was measured then
	l.emit()
	l.money()
	l.invariants()
	l.series()
	l.define()
	return l, cmp.Or(l.sessions(in.Events, facts), in.Err())
}

// systemOf fills in what is known of the trial's system: how it spreads objects over its
// servers, by its own word or its options; and what it is paid in.
func (l *loadTest) systemOf(facts *record.Reader) error {
	plan, err := analysis.ReadPlan(facts)
	if err != nil {
		return err
	}
	text := ""
	switch cell := l.trial.Info.Plan; {
	case cell.Upload != nil:
		text = string(cell.Upload.Price)
	case cell.Collect != nil:
		text = string(cell.Collect.Price)
	}
	l.price, _ = experiment.ParsePrice(text) // none is stated
	var use experiment.SystemUse
	for _, s := range plan.Experiment.Systems {
		if s.Name == l.trial.Info.System {
			use = s
		}
	}
	known := identityOf(use, analysis.Said(facts.Meta(), l.trial.Info.System))
	l.currency, l.coding = known["currency"], codingOf(known)
	return nil
}

// identityOf is what is known of a system: what it said, else its options.
func identityOf(use experiment.SystemUse, said map[string]string) map[string]string {
	known := map[string]string{"currency": "units"}
	maps.Copy(known, use.With)
	maps.Copy(known, said)
	return known
}

// codingOf is the coding of a system by its identity and options.
func codingOf(known map[string]string) (c coding) {
	number := func(key string) int64 {
		n, _ := strconv.ParseInt(known[key], 10, 64)
		return n
	}
	c.sector = number("sector")
	var a, b int64
	if n, _ := fmt.Sscanf(known["redundancy"], "%d data + %d parity", &a, &b); n == 2 {
		c.needed, c.servers = a, a+b
	} else if n, _ := fmt.Sscanf(known["redundancy"], "%d of %d shards", &a, &b); n == 2 {
		c.needed, c.servers = a, b
	} else { // by its options
		c.needed, c.servers = number("data_pieces")+number("needed"),
			number("data_pieces")+number("parity_pieces")+number("total")
	}
	if c.needed <= 0 || c.servers < c.needed {
		return coding{}
	}
	return c
}

// coding is how a system spreads an object over its servers; zero: not known.
type coding struct {
	sector  int64 // a piece is rounded up to it; 0: nothing is known to be
	needed  int64 // pieces that make the object again
	servers int64 // pieces altogether
}

// padded is what an object of a size takes once: pieces of whole sectors.
func (c coding) padded(size int64) int64 {
	unit := c.sector * c.needed
	if unit == 0 {
		return size
	}
	return max(1, (size+unit-1)/unit) * unit
}

// spread is absolute bytes for each file byte, as the client makes them.
func (c coding) spread() float64 {
	if c.needed == 0 {
		return 1
	}
	return float64(c.servers) / float64(c.needed)
}

// fresh reports whether nothing was stored at the first poll.
func (l *loadTest) fresh() bool {
	return l.empty(system.ReadFiles, system.ReadFileBytes, system.ReadAbsolute)
}

// empty reports whether readings were zero at the first poll, or are of objects of ours.
func (l *loadTest) empty(names ...string) bool {
	if l.up == nil {
		return true // what was there is what is watched
	}
	files := l.values[system.ReadFiles]
	for _, name := range names {
		v := l.values[name]
		first, _ := edge(v)
		if first < 0 || v[first] == 0 {
			continue
		}
		ours := l.by(l.end[first]).objects
		if l.began() > l.end[first] || first >= len(files) || !(files[first] <= float64(ours+int64(l.up.Concurrency))) {
			return false
		}
	}
	return true
}

// stored adds what is stored, and the bandwidths over the time of storing.
func (l *loadTest) stored() {
	l.files, l.fileBytes, l.fileRate, l.absolute = l.objects.stored, float64(l.bytes), nan, nan
	v := l.values[system.ReadAbsolute]
	first, last := edge(v)
	if l.up == nil {
		bytes := l.values[system.ReadFileBytes]
		from, to := edge(bytes)
		l.fileBytes, l.fileRate = l.now(system.ReadFileBytes), l.rate(bytes, from, to).Value
		if n := l.now(system.ReadFiles); !math.IsNaN(n) {
			l.files = int64(n)
		}
		l.row("file_bandwidth", "", l.fileRate)
		if first >= 0 {
			l.absolute = v[last]
			l.bandwidth(l.rate(v, first, last))
		}
	} else if from, to := l.began(), l.lastAt; l.objects.stored > 0 && to > from {
		l.fileRate = l.fileBytes / (to - from)
		l.row("storing", "", to-from)
		if value, lo, hi, ok := collect.Rate(l.reported(v), from, to); ok {
			l.bandwidth(analysis.Point{Value: value, Lo: lo, Hi: hi})
		}
	}
	if l.up != nil && first >= 0 {
		if l.absolute = v[last]; !l.fresh() {
			l.absolute -= v[first]
		}
	}
	l.row("files", "", float64(l.files))
	l.row("stored_bytes", "", l.fileBytes)
	l.row("absolute", "", l.absolute)
}

// bandwidth adds that of absolute bytes, with the bounds that the polls leave.
func (l *loadTest) bandwidth(p analysis.Point) {
	l.row("absolute_bandwidth_least", "", p.Lo)
	l.row("absolute_bandwidth_most", "", p.Hi)
}

// onServers are the file bytes on the servers at a poll, bounded by its start and end.
// Where the system reports them with the absolute bytes, these count, without what waits in
// buffers: accepted is not yet on servers.
func (l *loadTest) onServers(poll int) (lo, hi float64) {
	reported := l.values[system.ReadFileBytes]
	if l.up == nil {
		v, _ := latest(reported, poll)
		return v, v
	}
	lo, hi = l.by(l.start[poll]).bytes, l.by(l.end[poll]).bytes
	base, first := 0.0, -1
	if !l.fresh() {
		first, _ = edge(l.values[system.ReadAbsolute])
		base = l.by(l.mid(first)).bytes
	}
	lo, hi = lo-base, hi-base
	if poll >= len(reported) || math.IsNaN(reported[poll]) || l.calls["list"] { // a list is summed up at another moment
		return lo, hi
	}
	buffered := func(poll int) float64 {
		v, at := latest(l.values["buffered_bytes"], poll)
		if at < 0 {
			return 0
		}
		return v
	}
	v := reported[poll] - buffered(poll)
	if first >= 0 && !math.IsNaN(reported[first]) {
		v -= reported[first] - buffered(first)
	}
	return min(v, lo), min(v, hi)
}

// efficient adds where the absolute bytes come from: file bytes on the servers / absolute
// bytes = padding / copies. What was accepted and is in buffers yet counts in none of them.
func (l *loadTest) efficient(put func(string, float64)) {
	v := l.values[system.ReadAbsolute]
	first, last := edge(v)
	if !(l.absolute >= 0) {
		return
	}
	lo, hi := l.onServers(last)
	if l.up != nil && !(hi > 0) { // sectors are taken, and nothing is accepted yet
		return
	}
	there := (lo + hi) / 2
	if l.up == nil {
		l.row("storage_efficiency", "", there/l.absolute)
		l.row("absolute_per_file", "", l.absolute/float64(l.files))
		return
	}
	now, before := l.by(l.end[last]), stored{}
	if !l.fresh() {
		before = l.by(l.mid(first))
	}
	accepted, padded := now.bytes-before.bytes, now.rounded-before.rounded
	share := min(1, there/accepted) // of what was accepted, on servers
	took(l.absolute, float64(now.objects-before.objects)*share, there, put)
	if l.coding.sector > 0 && l.absolute < 0.99*padded*share {
		l.coding = coding{} // another build, or packed objects: the rounding is not known
	}
	if l.coding.needed > 0 && padded > 0 && accepted > 0 {
		padding := accepted / padded
		l.row("padding", "", padding)
		l.row("copies", "", padding/(there/l.absolute))
		l.row("efficiency_line", "", padding/l.coding.spread())
	}
}

// row adds a number of the trial, unless it is not known or recorded already.
func (l *loadTest) row(metric, entity string, v float64) {
	if _, recorded := l.trial.Metrics[metric]; math.IsNaN(v) || math.IsInf(v, 0) || recorded && entity == "" ||
		!analysis.Supported(metric, l.trial.Trial) {
		return
	}
	l.out.Rows = append(l.out.Rows, analysis.Row{Trial: l.trial, Entity: entity, Metric: metric, Value: v})
}

// emit adds the metrics, and what is not among them of objects and polls.
func (l *loadTest) emit() {
	for _, key := range slices.Sorted(maps.Keys(l.metrics)) {
		l.row(key, "", l.metrics[key])
	}
	l.row("contracts", "", l.now(system.ReadContracts))
	l.row("redundancy_mean", "", l.now(system.ReadRedundancyMean))
	l.row("below_redundancy", "", l.now(system.ReadBelow))
	if s := l.objects; s.n > 0 {
		for _, state := range slices.Sorted(maps.Keys(s.states)) {
			l.row("objects_by_state", string(state), float64(s.states[state]))
		}
		l.row("objects_by_state", "adopted", float64(s.adopted))
		l.row("objects_by_state", "retried", float64(s.retried))
		if l.up != nil && l.settles() {
			l.row("objects_by_state", lateState, float64(s.notDurable))
			l.row("objects_by_state", "durable late", float64(s.late))
		}
		l.row("no_room", "", float64(s.noRoom))
	}
	l.row("polls_timed_out", "", float64(l.timedOut))
	for _, k := range l.trouble {
		l.span(k.what, k.subject, k.from, k.to, fmt.Sprintf("%s, %d times; the first: %s", k.subject, k.count,
			k.detail))
	}
	// The load line: what the link carries, less the redundancy that the client makes.
	line := nan
	if v, ok := l.metrics["bandwidth_line"]; ok {
		line = v / l.coding.spread()
	}
	l.row("load_line", "", line)
	if share := l.full / (l.fullAt - l.began()) / line; l.fullAt > l.began() {
		l.row("load_line_share", "", share)
	} else if share := l.fileRate / line; share <= 1 { // what is accepted need not have crossed the link
		l.row("load_line_share", "", share)
	}
}

// span adds one to the trial's life.
func (l *loadTest) span(kind, entity string, from, to float64, note string) {
	l.out.Spans = append(l.out.Spans, analysis.Span{Trial: l.trial, Entity: entity, Kind: kind, From: from, To: to,
		Note: note})
}

// lateState is of objects that were accepted and not at their full redundancy in time.
const lateState = "not durable in time"

// settles reports whether the system says when an object is at its full redundancy.
func (l *loadTest) settles() bool {
	return l.states[record.JobDurable] > 0 || l.values[system.ReadUploads] != nil ||
		l.values[system.ReadRedundancyMin] != nil
}

// Kinds of spans of a load test's life.
const (
	sessionSpan = "session"
	endedMark   = "ended"
	crashMark   = "crash"
	faultMark   = "fault"
	killed      = "killed"
)

// sessions adds how often the trial was taken up again, what died under it, and what
// ended it. A session that was killed ended with the last that it recorded.
func (l *loadTest) sessions(events iter.Seq[record.Event], facts *record.Reader) error {
	begun, left, down := 0.0, -1.0, 0.0
	n, cut, crashes := 1, 0, 0
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
				cut++
			}
			add(sessionSpan, begun, left, note)
			down += max(0, at-left)
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
	l.row("sessions_killed", "", float64(cut))
	l.row("downtime", "", down)
	l.row("crashes", "", float64(crashes))
	return nil
}
