package report

import (
	"fmt"
	"math"
	"math/rand/v2"
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

// ratioOf is the ratio of medians with a bootstrap interval over pairs of one
// block. With too few pairs for the bootstrap, the range of the pairs' own
// ratios stands in for it.
func ratioOf(xs, ys []float64, seed uint64) Ratio {
	i := stats.PairedRatio(xs, ys, Confidence, seed)
	q := Ratio{N: len(xs), Value: Num(i.Mid), Lo: Num(i.Lo), Hi: Num(i.Hi), Confidence: i.Conf, P: Num(stats.MannWhitney(xs, ys)), Warn: i.Warn}
	if i.Bounded() {
		return q
	}
	q.Lo, q.Hi, q.Confidence = unknown, unknown, 0
	if len(xs) > 1 {
		rs := make([]float64, len(xs))
		for j := range xs {
			rs[j] = xs[j] / ys[j]
		}
		q.Lo, q.Hi = min(Num(slices.Min(rs)), q.Value), max(Num(slices.Max(rs)), q.Value)
		q.Confidence = rangeConfidence(len(xs))
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
// trial share its fate, so trials are the clusters of its interval.
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
	i := stats.ClusteredProportion(each, false, conf)
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

// flipTest is the two-sided p of the mean log ratio, were each pair as likely
// to have come out the other way round (Fisher's sign-flip test): the share of
// all ways to flip the pairs' signs that give a mean as far from 0. Up to
// exactFlips pairs all ways are counted, beyond that a seeded sample.
func flipTest(groups [][]float64, seed uint64) float64 {
	const exactFlips, draws = 16, 20_000
	var weighed []float64
	for _, g := range groups {
		for _, x := range g {
			weighed = append(weighed, x/float64(len(g)))
		}
	}
	seen := 0.0
	for _, x := range weighed {
		seen += x
	}
	// Sums of the same terms in another order differ in their last bits.
	seen = math.Abs(seen) * (1 - 1e-12)
	// Signs are flipped by their bit: a branch that nobody can foretell takes most of
	// the time.
	far := func(bit func(i int) uint64) int {
		sum := 0.0
		for i, x := range weighed {
			sum += math.Float64frombits(math.Float64bits(x) ^ bit(i)<<63)
		}
		if math.Abs(sum) >= seen {
			return 1
		}
		return 0
	}
	n := 0
	if len(weighed) <= exactFlips {
		for way := range uint64(1) << len(weighed) {
			n += far(func(i int) uint64 { return way >> i & 1 })
		}
		return float64(n) / float64(int(1)<<len(weighed))
	}
	rng := rand.NewPCG(seed, 0x666c6970)
	for range draws {
		n += far(func(int) uint64 { return rng.Uint64() & 1 })
	}
	// The way that was seen is one of them: p is never 0.
	return float64(n+1) / (draws + 1)
}
