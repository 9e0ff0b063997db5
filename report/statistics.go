package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// summaryOf is the median of a cell's trials with its exact interval, or with
// the range of the trials where these are too few for an interval.
func summaryOf(xs []float64, blocks []int) Summary {
	s := Summary{N: len(xs), values: xs, blocks: blocks}
	i := stats.MedianCI(xs, Confidence)
	s.Median, s.Lo, s.Hi, s.Confidence, s.Exact = Num(i.Mid), Num(i.Lo), Num(i.Hi), i.Conf, i.Bounded()
	if !i.Bounded() {
		s.Lo, s.Hi = unknown, unknown
		s.Confidence = 0
		if len(xs) > 1 {
			s.Lo, s.Hi = Num(slices.Min(xs)), Num(slices.Max(xs))
			s.Confidence = rangeConfidence(len(xs))
		}
	}
	return s
}

// with is s with so many trials more whose values are larger than any: they are
// known only to be beyond what was watched. Leaving them out would make the
// median too low. It is not known when half of the trials are like that.
func (s Summary) with(beyond int) Summary { return s.withAll(beyond, math.Inf(1)) }

// withAll likewise, for values that are larger than any (+∞) or smaller (−∞).
func (s Summary) withAll(beyond int, value float64) Summary {
	if beyond == 0 {
		return s
	}
	all := slices.Clone(s.values)
	for range beyond {
		all = append(all, value)
	}
	more := summaryOf(all, nil)
	more.values, more.blocks, more.beyond = s.values, s.blocks, beyond
	if !more.Hi.Known() || !more.Lo.Known() {
		more.Lo, more.Hi, more.Confidence, more.Exact = unknown, unknown, 0, false
	}
	return more
}

// censoredAway reports whether a trial lacks a percentile of a time because the
// operations that would tell it were cut off by the experiment: it is larger
// than what was watched.
func censoredAway(key string, t record.Trial) bool {
	if ofSwarm(key) || ofSync(key) {
		return unfinishedOperations(t)
	}
	switch strings.TrimRight(key, "0123456789") {
	case "ttfb_p", "first_byte_p", "duration_p", "put_p", "get_p", "stat_p":
	default:
		return false
	}
	for _, o := range record.Outcomes() {
		if !o.Finished() && t.Outcomes[o.String()] > 0 {
			return true
		}
	}
	return false
}

// byBlock are a cell's values in valid trials, by block; beyond is how many of them
// are known only to be beyond what was watched, and as far off as there is.
func (r *Report) byBlock(c *Cell, m record.Metric) (values map[int]float64, beyond int) {
	values = map[int]float64{}
	for _, t := range r.Trials {
		if t.Info != c || !t.Valid() {
			continue
		}
		x, ok := t.Metrics[m.Key]
		switch {
		case !Supported(m.Key, t.Trial):
		case !ok && censoredAway(m.Key, t.Trial):
			values[t.Block] = farthest(m)
			beyond++
		case ok && !math.IsNaN(x) && !math.IsInf(x, 0):
			values[t.Block] = x
		}
	}
	return values, beyond
}

// all are a cell's values in all valid trials; those known only to be beyond what
// was watched are as far off as there is.
func (c *Cell) all(m record.Metric) []float64 {
	s, _ := c.summary(m)
	return s.all(m)
}

// Supported reports whether a trial has the operations that a percentile needs.
func Supported(key string, t record.Trial) bool {
	at := strings.LastIndex(key, "_p")
	if at < 0 || ofSwarm(key) { // quartiles of all leechers of a trial, however few, not of what they are drawn from
		return true
	}
	q, err := strconv.ParseFloat("0."+key[at+2:], 64)
	if err != nil {
		return true
	}
	ok, _ := stats.CanTell(t.Outcomes[record.OK.String()], q)
	// The median of few operations is still their middle; it needs no tail.
	return ok || q == 0.5
}

// fewestPairs is the least number of pairs of which a difference is claimed.
const fewestPairs = 4

// ratioOf is the ratio within pairs of one block. The signed-rank test and its interval
// decide where they can pass the correction for a family of so many comparisons. Pairs
// too few for that have Student's, and fewer than four only the range of their ratios.
func ratioOf(xs, ys []float64, family int) Ratio {
	logs := make([]float64, len(xs))
	for i := range xs {
		logs[i] = math.Log(xs[i] / ys[i])
	}
	n := len(logs)
	i, p := stats.PairedRatio(logs, Confidence)
	q := Ratio{N: n}
	switch {
	case n < fewestPairs:
		q.Warn = "too few trials to show a difference"
	case stats.LeastPairedP(n)*float64(family) > alpha:
		if t, tp := stats.StudentRatio(logs, Confidence); t.Bounded() {
			i, p = t, tp
		}
		q.Warn = fmt.Sprintf("%d pairs are too few for a signed-rank test of %s: Student's interval decides", n, plural(int64(family), "comparison", "comparisons"))
	}
	q.Value, q.Lo, q.Hi, q.Confidence, q.P, q.PHolm = Num(i.Mid), Num(i.Lo), Num(i.Hi), i.Conf, Num(p), Num(p)
	if i.Bounded() {
		return q
	}
	q.Lo, q.Hi, q.Confidence = unknown, unknown, 0
	if n > 1 {
		q.Lo, q.Hi, q.Confidence = Num(math.Exp(slices.Min(logs))), Num(math.Exp(slices.Max(logs))), rangeConfidence(n)
	}
	return q
}

// leastRanged is the smallest sample whose range stands in for an interval: it covers
// the median in 87.5 %.
const leastRanged = 4

// unpairedRatio is the ratio of medians of samples that do not belong together. Where
// they are too few for an interval but a rank test can show something, the range of
// the ratios of their values stands in for it: it excludes 1 where the samples do not
// overlap, and covers the ratio of the medians at least as often as both ranges cover
// theirs, which is its confidence.
func unpairedRatio(xs, ys []float64) (i stats.Interval, ranged bool) {
	i = stats.Ratio(xs, ys, Confidence)
	if i.Bounded() || math.IsNaN(i.Mid) || i.Conf < 1 || min(len(xs), len(ys)) < leastRanged || stats.MinP(len(xs), len(ys)) > alpha {
		return i, false
	}
	lo, hi := slices.Min(xs)/slices.Max(ys), slices.Max(xs)/slices.Min(ys)
	if !(lo >= 0 && hi >= lo) || math.IsInf(hi, 0) {
		return i, false
	}
	i.Lo, i.Hi, i.Conf = lo, hi, rangeConfidence(len(xs))*rangeConfidence(len(ys))
	i.Warn = fmt.Sprintf("%d and %d values are too few for a 95 %% interval of their ratio: the range of the ratios stands in its place", len(xs), len(ys))
	return i, true
}

// rangeConfidence is how often the range of n values covers their population's
// median: 1 − 2^(1−n).
func rangeConfidence(n int) float64 { return 1 - math.Pow(2, float64(1-n)) }

// successOf is the share of finished operations that were ok. Operations of one
// trial share its fate, so trials are the clusters of its interval; one trial has none,
// but for a load test, which is never more than one.
func successOf(trials []Trial) Proportion { return successWith(trials, Confidence) }

func successWith(trials []Trial, conf float64) Proportion {
	p := Proportion{Value: unknown, Lo: unknown, Hi: unknown}
	var each []stats.Count
	for _, t := range trials {
		ok, of, censored, puts := finishedOf(&t.Trial)
		p.Censored += censored
		p.puts = p.puts || puts
		p.OK, p.Of = p.OK+ok, p.Of+of
		each = append(each, stats.Count{K: float64(ok), N: float64(of)})
	}
	if p.Of == 0 {
		return p
	}
	p.lumped = stats.Concentrated(each)
	i := stats.ClusteredProportion(each, false, conf)
	if len(each) == 1 && trials[0].Info.plan.Upload != nil { // its puts are taken as independent
		i = stats.Proportion(p.OK, p.Of, conf)
	}
	p.Value, p.Worth = Num(i.Mid), int64(i.N)
	if i.Bounded() {
		p.Lo, p.Hi = Num(i.Lo), Num(i.Hi)
	}
	return p
}

// finishedOf counts the operations of a trial that came to an end of their own, and
// those that were cut off. Of a load test they are the puts alone, where the trial
// tells them (releases since November 2026): fetches that check what was stored are
// in the outcomes, too, and are nothing that a user asked for.
func finishedOf(t *record.Trial) (ok, of, censored int64, puts bool) {
	for name, n := range t.Outcomes {
		o, err := record.ParseOutcome(name)
		switch {
		case err != nil:
		case o == record.OK:
			ok, of = ok+n, of+n
		case o.Finished():
			of += n
		default:
			censored += n
		}
	}
	if n, told := t.Metrics["puts_ended"]; told {
		return int64(math.Round(n * t.Metrics["success_rate"])), int64(n), censored, true
	}
	return ok, of, censored, false
}
