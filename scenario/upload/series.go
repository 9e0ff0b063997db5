package upload

import (
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/system"
)

// mostPoints is how many a series has.
const mostPoints = 200

// overObjects is what series of objects are over.
const overObjects = "objects stored"

func (l *loadTest) addSeries(metric, over string, points []analysis.Point) {
	if len(points) > 1 {
		l.out.Series = append(l.out.Series, analysis.Series{Trial: l.trial, Metric: metric, Over: over, Points: points})
	}
}

// levels are a reading at the end of each stretch.
func (l *loadTest) levels(v []float64) []analysis.Point {
	return l.points(v, func(_, j int) analysis.Point {
		return analysis.Point{At: l.mid(j), Value: v[j], Lo: nan, Hi: nan}
	})
}

// rates are its growth per second in each.
func (l *loadTest) rates(v []float64) []analysis.Point {
	return l.points(v, func(i, j int) analysis.Point { return l.rate(v, i, j) })
}

// series adds what changes within the trial.
func (l *loadTest) series() {
	l.addSeries("api_latency", "", l.points(l.latency, func(i, j int) analysis.Point {
		took := known(l.latency[i : j+1])
		return analysis.Point{At: l.mid(j), Value: stats.Median(took), Lo: slices.Min(took), Hi: slices.Max(took)}
	}))
	l.addSeries("absolute", "", l.levels(l.values[system.ReadAbsolute]))
	l.addSeries("absolute_bandwidth", "", l.rates(l.values[system.ReadAbsolute]))
	l.addSeries("money_used", "", l.levels(l.usedByPoll()))
	if l.up != nil {
		l.ofObjects()
		return
	}
	l.addSeries("files", "", l.levels(l.values[system.ReadFiles]))
	l.addSeries("stored_bytes", "", l.levels(l.values[system.ReadFileBytes]))
	l.addSeries("file_bandwidth", "", l.rates(l.values[system.ReadFileBytes]))
}

// usedByPoll is the money used up by each poll. Of a system whose own totals all belong to
// the test, what was used before the first poll is in it.
func (l *loadTest) usedByPoll() (all []float64) {
	before := l.used - l.now(moneyUsed)
	if math.IsNaN(before) {
		before = 0
	}
	for _, v := range l.values[moneyUsed] {
		all = append(all, v+before)
	}
	return all
}

// ofObjects adds the series of objects, each point of an equal number of them.
func (l *loadTest) ofObjects() {
	n, sampled, scale := len(l.sample), int64(0), 1.0
	for _, x := range l.sample {
		sampled += x.size
	}
	if sampled > 0 {
		scale = float64(l.bytes) / float64(sampled)
	}
	all := map[string][]analysis.Point{}
	add := func(metric string, at, v float64) {
		if !math.IsNaN(v) {
			all[metric] = append(all[metric], analysis.Point{At: at, Value: v, Lo: nan, Hi: nan})
		}
	}
	before, bytes := l.began(), 0.0
	for i := range min(n, mostPoints) {
		from, to := i*n/min(n, mostPoints), (i+1)*n/min(n, mostPoints)
		part, end, count, came := l.sample[from:to], l.sample[to-1].at,
			float64(to)*float64(l.objects.stored)/float64(n), 0.0
		for _, x := range part {
			came += float64(x.size) * scale
		}
		bytes += came
		add("files", end, count)
		add("stored_bytes", end, bytes)
		if end > before {
			add("file_bandwidth", end, came/(end-before))
			add("throughput", count, came/(end-before))
		}
		add("accept_time", count, stats.Median(times(part, accepting)))
		add("durable_time", count, stats.Median(times(part, settling)))
		before = end
	}
	for _, metric := range []string{"files", "stored_bytes", "file_bandwidth"} {
		l.addSeries(metric, "", all[metric])
	}
	for _, metric := range []string{"throughput", "accept_time", "durable_time"} {
		l.addSeries(metric, overObjects, all[metric])
	}
}

// define says what the rows and series are that no definition of the run covers.
func (l *loadTest) define() {
	l.out.Metrics = slices.Concat(l.out.Metrics, metrics, ofServers)
	if len(l.readings.last) == 0 || l.decimals < 0 {
		return // without money, its unit is for another system of the run to say
	}
	for _, m := range amounts {
		m.Unit, m.Better = l.currency, record.Lower
		if m.Key == "wallet_first" || m.Key == "wallet_last" {
			m.Better = record.Neither
		}
		l.out.Metrics = append(l.out.Metrics, m)
		if l.price.Each != nil {
			m.Key, m.Name, m.Unit = m.Key+priced, m.Name+", at the stated price", l.price.Currency
			l.out.Metrics = append(l.out.Metrics, m)
		}
	}
}

// ofServers are recorded of load tests, and computed of what is only watched.
var ofServers = []record.Metric{
	{Key: "storage_efficiency", Name: "storage efficiency", Unit: "ratio", Better: record.Higher,
		Help: "file bytes on the servers, without those in buffers, over absolute bytes"},
	{Key: "absolute_per_file", Name: "absolute bytes per file", Unit: "B", Better: record.Lower,
		Help: "absolute bytes per object on the servers, without those in buffers"},
}

var metrics = []record.Metric{
	{Key: "files", Name: "objects stored", Unit: "1", Better: record.Higher,
		Help: "objects that the system has accepted; of collect, those that it lists"},
	{Key: "storing", Name: "time of storing", Unit: "s", Better: record.Neither,
		Help: "from the first put to the last acceptance: without waiting for redundancy, and without verifying"},
	{Key: "stored_bytes", Name: "file bytes stored", Unit: "B", Better: record.Higher, Help: "sum of their sizes"},
	{Key: "absolute", Name: "absolute bytes", Unit: "B", Better: record.Neither,
		Help: "bytes on the storage servers since the test began, padding, metadata and redundancy included"},
	{Key: "absolute_bandwidth_least", Name: "absolute bandwidth, at least", Unit: "B/s", Better: record.Higher,
		Help: "bound that the moments of the polls leave"},
	{Key: "absolute_bandwidth_most", Name: "absolute bandwidth, at most", Unit: "B/s", Better: record.Higher,
		Help: "likewise"},
	{Key: "efficiency_line", Name: "load line of the storage efficiency", Unit: "ratio", Better: record.Neither,
		Help: "padding times n/k of the code: the most that whole sectors and the wanted redundancy allow"},
	{Key: "padding", Name: "file bytes per padded byte", Unit: "ratio", Better: record.Higher,
		Help: "file bytes divided by the objects' sizes in whole sectors"},
	{Key: "copies", Name: "redundancy on the servers", Unit: "×", Better: record.Neither,
		Help: "absolute bytes divided by the objects' sizes in whole sectors"},
	{Key: "redundancy_mean", Name: "redundancy, mean", Unit: "×", Better: record.Neither,
		Help: "of the files that are whole, by the system's account, at the last poll"},
	{Key: "below_redundancy", Name: "files below their redundancy", Unit: "1", Better: record.Lower,
		Help: "files that had their full redundancy and no longer have it, at the last poll"},
	{Key: "contracts", Name: "contracts", Unit: "1", Better: record.Neither,
		Help: "with storage servers, at the last poll"},
	{Key: "objects_by_state", Name: "objects by state", Unit: "1", Better: record.Neither,
		Help: "at the end of the test"},
	{Key: "no_room", Name: "objects without room", Unit: "1", Better: record.Lower,
		Help: "objects that were not stored because the system had no room for them, by its own word"},
	{Key: "throughput", Name: "file bandwidth", Unit: "B/s", Better: record.Higher,
		Help: "file bytes accepted per second, over the objects stored before"},
	{Key: "accept_time", Name: "time to store an object", Unit: "s", Better: record.Lower,
		Help: "median of neighbouring objects, over the objects stored before"},
	{Key: "durable_time", Name: "time to full redundancy", Unit: "s", Better: record.Lower, Help: "likewise"},
	{Key: "api_latency", Name: "API latency", Unit: "s", Better: record.Lower,
		Help: "time that all calls of a poll took together"},
	{Key: "polls_timed_out", Name: "polls with a call that timed out", Unit: "1", Better: record.Lower,
		Help: "their latency is at least what is recorded"},
	{Key: "duration", Name: "duration", Unit: "s", Better: record.Neither,
		Help: "from the beginning of the test to the last moment recorded"},
	{Key: "sessions", Name: "sessions", Unit: "1", Better: record.Neither,
		Help: "how often Plimsoll was started for the test"},
	{Key: "sessions_killed", Name: "sessions killed", Unit: "1", Better: record.Lower,
		Help: "they ended with the last that they recorded"},
	{Key: "downtime", Name: "time between sessions", Unit: "s", Better: record.Lower,
		Help: "it is in the duration and in the bandwidths"},
	{Key: "crashes", Name: "crashes", Unit: "1", Better: record.Lower, Help: "ends of the system's own processes"},
	{Key: "load_line", Name: "load line of the file bandwidth", Unit: "B/s", Better: record.Neither,
		Help: "what the link carried before the trial, divided by the redundancy that the client makes"},
	{Key: "load_line_share", Name: "share of the load line", Unit: "ratio", Better: record.Higher,
		Help: "of objects at their full redundancy, or of accepted ones where the system does not say when that is"},
	{Key: "money_share", Name: "share of the money spent", Unit: "ratio", Better: record.Neither, Help: "by purpose"},
}

// amounts are in the currency of the system.
var amounts = []record.Metric{
	{Key: "money", Name: "money by purpose", Help: "by the system's account at the last poll"},
	{Key: "money_spent", Name: "money spent", Help: "all that contracts cost, the unspent included"},
	{Key: "money_used", Name: "money used", Help: "money spent less what lies unspent in contracts"},
	{Key: "money_unspent", Name: "money unspent in contracts", Help: "it comes back when they end"},
	{Key: "money_per_file", Name: "money used per object", Help: "money used divided by objects stored"},
	{Key: "money_per_tb_month", Name: "cost of storing a TB for a month",
		Help: "fees and storage alone, for 10^12 file bytes and each month of a contract"},
	{Key: "money_per_tb_month_all", Name: "cost of a TB·month with bandwidth", Help: "all money used, likewise"},
	{Key: "money_missing", Name: "money missing", Help: "by which wallet and contracts together fell for good"},
	{Key: "wallet_first", Name: "wallet at the beginning", Help: "at the first poll"},
	{Key: "wallet_last", Name: "wallet at the end", Help: "at the last poll"},
}
