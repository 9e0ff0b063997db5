package analysis

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Confidence is the level of every interval.
const Confidence = 0.95

// alpha is the significance level.
const alpha = 1 - Confidence

// Summary is a metric over the valid trials of a cell. With too few trials for an interval of
// the median, Lo and Hi are the lowest and highest trial, Exact is false, and Confidence is the
// coverage of that range.
type Summary struct {
	N          int     `json:"n"`
	Median     Num     `json:"median"`
	Lo         Num     `json:"lo"`
	Hi         Num     `json:"hi"`
	Confidence float64 `json:"confidence"`
	Exact      bool    `json:"exact"`

	Values   []float64 `json:"-"` // of the trials that have one
	Blocks   []int     `json:"-"`
	Censored int       `json:"-"` // number of censored trials
}

// Proportion is a share of operations, with an interval for the effective number of independent
// operations (Korn and Graubard; see stats.ClusteredProportion).
type Proportion struct {
	Of int64 `json:"of"` // finished operations: ok, or failed by the server
	OK int64 `json:"ok"`
	Range
	Worth    int64 `json:"worth"`
	Censored int64 `json:"censored"` // starved, deadline, in flight, cancelled: not part of the share

	lumped bool // one trial holds most of the failures
}

// summarise computes each cell's medians, intervals and success rate.
func (f *Frame) summarise() {
	for _, c := range f.Cells {
		c.Success = f.success(c, Confidence)
		for _, m := range f.Metrics {
			if s := summaryOf(f.Of(c, m.Key)); s.Median.Known() {
				c.Metrics[m.Key] = s
			}
		}
	}
}

// summaryOf returns the median of rows; censored ones count as beyond all others.
func summaryOf(rows []Row) Summary {
	var s Summary
	var all []float64
	for _, r := range rows {
		all = append(all, r.Value)
		if r.Censored {
			s.Censored++
			continue
		}
		s.Values, s.Blocks = append(s.Values, r.Value), append(s.Blocks, r.Trial.Block)
	}
	i := stats.MedianCI(all, Confidence)
	s.N, s.Median, s.Lo, s.Hi, s.Confidence, s.Exact = len(all), Num(i.Mid), Num(i.Lo), Num(i.Hi), i.Conf, i.Bounded()
	if i.Bounded() {
		return s
	}
	s.Lo, s.Hi, s.Confidence = Unknown, Unknown, 0
	if len(all) > 1 && s.Censored == 0 {
		s.Lo, s.Hi, s.Confidence = Num(slices.Min(all)), Num(slices.Max(all)), stats.RangeConfidence(len(all))
	}
	return s
}

// pool replaces the median of a success metric by the share of all operations, which it returns: a median hides
// failures that are in few trials. For other metrics the answer has no value.
func (s *Summary) pool(f *Frame, c *Cell, m record.Metric) stats.Interval {
	p := Proportion{Range: NoRange}
	if slices.Contains(successMetrics, m.Key) {
		p = f.success(c, Confidence)
	}
	if p.Of > 0 {
		s.Median, s.Lo, s.Hi, s.Confidence, s.Exact = p.Value, p.Lo, p.Hi, Confidence, p.Lo.Known()
	}
	return p.interval()
}

// success returns the share of finished operations of a cell that were ok. Operations of one
// trial are not independent, so trials are the clusters of the interval; a single trial has no
// interval, unless the view says that there is only one by design.
func (f *Frame) success(c *Cell, conf float64) Proportion {
	var each []stats.Count
	cut, inTime := int64(0), f.View.InTime
	for _, t := range f.ValidTrials(c) {
		ok, of, censored := t.finished(inTime)
		cut += censored
		if of > 0 || !inTime {
			each = append(each, stats.Count{K: float64(ok), N: float64(of)})
		}
	}
	p := Share(each, f.View.OneFate, conf)
	if p.Censored = cut; p.Of == 0 {
		return p
	}
	p.lumped = !inTime && stats.Concentrated(each)
	if len(each) == 1 && f.View.OneTrial {
		p.estimate(stats.Proportion(p.OK, p.Of, conf))
	}
	return p
}

// Share returns the proportion of the counts of several trials, with the interval of
// stats.ClusteredProportion.
func Share(trials []stats.Count, oneFate bool, conf float64) Proportion {
	p := Proportion{Range: NoRange}
	for _, t := range trials {
		p.OK, p.Of = p.OK+int64(t.K), p.Of+int64(t.N)
	}
	if p.Of > 0 {
		p.estimate(stats.ClusteredProportion(trials, oneFate, conf))
	}
	return p
}

func (p Proportion) interval() stats.Interval {
	return stats.Interval{Mid: float64(p.Value), Lo: float64(p.Lo), Hi: float64(p.Hi)}
}

func (p *Proportion) estimate(i stats.Interval) {
	p.Range, p.Worth = rangeOf(i), int64(i.N)
}

// finished counts the operations of a trial that ended by themselves, and those that were cut
// off; with inTime, reaching the deadline is an end, too. In a load test only puts count, if the
// trial has their number: its outcomes also include the fetches that check what was stored.
func (t *Trial) finished(inTime bool) (ok, of, censored int64) {
	for name, n := range t.Outcomes {
		o, err := record.ParseOutcome(name)
		switch {
		case err != nil:
		case o == record.OK:
			ok, of = ok+n, of+n
		case o.Finished(), inTime && o != record.Cancelled && o != record.InFlight:
			of += n
		default:
			censored += n
		}
	}
	if n, has := t.Metrics["puts_ended"]; has {
		return int64(math.Round(n * t.Metrics["success_rate"])), int64(n), censored
	}
	return ok, of, censored
}

// Supported reports whether a trial has enough operations for a percentile. A median needs no
// minimum.
func Supported(metric string, t record.Trial) bool {
	at := strings.LastIndex(metric, "_p")
	if at < 0 || !slices.Contains(overOperations, metric[:at]) {
		return true
	}
	q, err := strconv.ParseFloat("0."+metric[at+2:], 64)
	if err != nil || q == 0.5 {
		return true
	}
	return t.Outcomes[record.OK.String()] >= stats.PercentileN(q)
}

// overOperations are the names of percentiles over the operations of a trial. Percentiles over
// nodes are over all nodes, however few.
var overOperations = []string{"ttfb", "duration", "first_byte", "put", "get", "stat", "accept", "durable", "poll"}

// censors reports whether a metric that a trial lacks is censored, because it is a time that some operations did
// not reach, or a share of the load line, which follows from such a time.
func (v *View) censors(t *Trial, metric string) bool {
	timed, ended := slices.Contains(v.Censored, metric), func(o record.Outcome) bool { return o == record.OK }
	if v.Censored == nil {
		timed = slices.Contains([]string{"ttfb_p", "first_byte_p", "duration_p", "put_p", "get_p", "stat_p", "throughput"},
			strings.TrimRight(metric, "0123456789"))
		ended = record.Outcome.Finished
	}
	line, ofLine := strings.CutSuffix(metric, "_share")
	cut := (timed || ofLine && t.Metrics[line] > 0) && slices.ContainsFunc(record.Outcomes(),
		func(o record.Outcome) bool { return !ended(o) && t.Outcomes[o.String()] > 0 })
	if v.Censors != nil {
		return v.Censors(t, metric, cut)
	}
	return cut
}
