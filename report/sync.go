package report

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Synced is what became of the fresh nodes of one cell of the scenario sync.
type Synced struct {
	Cell     string         `json:"cell"`
	System   string         `json:"system"`
	Where    string         `json:"where,omitempty"`   // the conditions: link, chain, peers' speeds, trouble, faults
	Changed  string         `json:"changed,omitempty"` // knobs that differ from the default
	Default  bool           `json:"default,omitempty"`
	Trials   int            `json:"trials"`             // valid
	Outcomes map[string]int `json:"outcomes,omitempty"` // of them
	// Shares of the time until the node can serve: before the first block, then until
	// the chain is whole, then until what subscribes to it has followed. Of the trial
	// with the middle share before the first block; null: none came to serve.
	StartUp Num `json:"start_up"`
	Net     Num `json:"net"`
	Index   Num `json:"index"`
	// What the time is shown to be bound by: "link", "compute" (its own work), "machine",
	// "cpu", "disk", or "waits" when it is far from all that was measured; empty: not
	// known.
	Bound string `json:"bound,omitempty"`
	// The load line as a share of the time after the first block.
	NetLineShare Num        `json:"net_line_share"`
	Peers        []PeerUsed `json:"peers,omitempty"` // over all valid trials, by what they were
	Shown        int64      `json:"shown,omitempty"` // the trial that stands for the cell in pictures
	Rates        []HeightAt `json:"rates,omitempty"`

	cell   *Cell
	trials []syncTrial
	bounds *findings.Bounds // nil: it is not asked
	time   Summary          // until it can serve, see timeOf
}

// syncTrial is one valid trial of a cell.
type syncTrial struct {
	*Trial
	*following
}

// served reports whether the node came to serve.
func (t *syncTrial) served() bool { return t.outcome == record.OK }

// Bounds of a time.
const (
	boundLink    = "link"
	boundCompute = "compute"
	boundMachine = "machine"
	boundCPU     = "cpu"
	boundDisk    = "disk"
	boundWaits   = "waits"
)

// sync fills the account of every cell, and what its knobs do.
func (r *Report) sync(*input) {
	r.Syncs = []Synced{}
	for _, c := range r.cells() {
		if c.plan.Sync == nil {
			continue
		}
		s := Synced{Cell: c.ID, System: c.System, Where: r.conditions(c), Changed: r.changed(c), Default: c.Baseline, StartUp: unknown, Net: unknown, Index: unknown, NetLineShare: unknown, cell: c}
		for i := range r.Trials {
			t := &r.Trials[i]
			if t.Info == c && t.Valid() && r.syncs[t.ID] != nil {
				s.trials = append(s.trials, syncTrial{t, r.syncs[t.ID]})
			}
		}
		s.Trials = len(s.trials)
		if s.Trials == 0 && r.searched() {
			continue // a search leaves most combinations alone
		}
		for _, t := range s.trials {
			if s.Outcomes == nil {
				s.Outcomes = map[string]int{}
			}
			s.Outcomes[t.outcome.String()]++
		}
		s.time = s.timeOf("sync_time")
		s.divide()
		s.approach()
		s.Peers = s.peersUsed()
		s.Shown = s.choose()
		s.Rates = s.rates()
		r.Syncs = append(r.Syncs, s)
	}
	r.bindSyncs()
	r.walked()
	r.tune()
	r.shapes()
}

// unfinished counts the valid trials whose node never came to serve.
func (s *Synced) unfinished() int { return s.Trials - s.Outcomes[record.OK.String()] }

// name is the cell in words: its system when there are several, what it changes,
// and the conditions.
func (r *Report) syncName(s *Synced) string {
	name := r.configured(s.cell)
	if len(r.Systems) > 1 {
		name = s.System + ", " + name
	}
	if s.Where != "" {
		name += " (" + s.Where + ")"
	}
	return name
}

// divided reports whether a trial's time can be divided into its parts, and how long
// it is.
func (t *syncTrial) divided() (all, first, chain float64, ok bool) {
	all, first, chain = t.Metrics["sync_time"], t.Metrics["first_block"], t.Metrics["chain_time"]
	return all, first, chain, t.served() && all > 0 && chain > 0 && first <= chain && chain <= all*(1+1e-9)
}

// starts are the times before the first block, of those until the node can serve.
func (s *Synced) starts() (all []parted) {
	for i := range s.trials {
		if whole, first, _, ok := s.trials[i].divided(); ok {
			all = append(all, parted{first, whole})
		}
	}
	return all
}

// divide fills the shares of the time: those of the one trial that stands for the
// start-up, see [shareOver], so that they add up and are the same in all that a
// report says of them.
func (s *Synced) divide() {
	_, mid := shareOver(s.starts())
	for i := range s.trials {
		if all, first, chain, ok := s.trials[i].divided(); ok && (parted{first, all}) == mid {
			s.StartUp, s.Net, s.Index = Num(first/all), Num((chain-first)/all), Num(max(0, all-chain)/all)
			return
		}
	}
}

// approach fills the load line as a share of the time after the first block.
func (s *Synced) approach() {
	var net []float64
	for _, t := range s.trials {
		if d := t.Metrics["net_time"]; t.served() && d > 0 && t.Metrics["line"] > 0 {
			net = append(net, t.Metrics["line"]/d)
		}
	}
	if len(net) > 0 {
		s.NetLineShare = Num(middle(net))
	}
}

// fasterThanReplay reports whether the node was faster than its own work from a local
// file by more than noise.
func (s *Synced) fasterThanReplay() bool {
	f := s.fresh("")
	return f.Disturbed()
}

// fresh is the time of the cell's nodes as rules look at it.
func (s *Synced) fresh(name string) findings.Fresh {
	f := findings.Fresh{Where: name, Time: s.metric("sync_time"), Resolution: s.metric("resolution"), Replay: math.NaN(), Share: math.NaN(),
		Peers: s.cell.plan.Sync.Peers, Timeouts: s.metric("timeouts"), Again: s.metric("rerequests"), Useful: s.metric("useful_share"), Most: s.metric("peer_share_max")}
	line, replay, link := s.cell.Metrics["line_share"], s.cell.Metrics["replay"], s.cell.Metrics["link_line"]
	if line.N > 0 && replay.N > 0 && replay.Median > link.Median {
		f.Replay, f.Share = s.metric("replay"), float64(line.Median)
	}
	return f
}

// quiet reports whether nothing goes wrong in the cell on purpose.
func (s *Synced) quiet() bool {
	f := s.cell.plan.Sync.Faults
	return f == "" || f == noFaults
}

// troubled reports whether peers are of little use on purpose.
func (s *Synced) troubled() bool {
	v := s.cell.plan.Sync.Trouble
	return v != "" && v != noFaults
}

// choose picks the trial that stands for the cell: of those in which the node came
// to serve, the one whose time is the median (the lower middle, of equal ones the
// first); where there is none, the first.
func (s *Synced) choose() int64 {
	type timed struct {
		id int64
		v  float64
	}
	var all []timed
	for _, t := range s.trials {
		if v, ok := t.Metrics["sync_time"]; ok && t.served() {
			all = append(all, timed{t.ID, v})
		}
	}
	slices.SortStableFunc(all, func(a, b timed) int {
		if a.v < b.v {
			return -1
		}
		if a.v > b.v {
			return 1
		}
		return 0
	})
	if len(all) > 0 {
		return all[(len(all)-1)/2].id
	}
	if len(s.trials) > 0 {
		return s.trials[0].ID
	}
	return 0
}

// shown is the trial that stands for the cell; nil: there is none.
func (s *Synced) shown() *syncTrial {
	for i := range s.trials {
		if s.trials[i].ID == s.Shown {
			return &s.trials[i]
		}
	}
	return nil
}

// timeOf is a time, such as that until it can serve, in the middle of the trials: the geometric
// mean with Student's interval on the logarithms, of which gains and effects are
// ratios, so that the times of a page are those that its gains are of. Where a node
// never served it is the median, with such trials longer than any. Without trials its
// N is 0.
func (s *Synced) timeOf(key string) Summary {
	m, ok := s.cell.Metrics[key]
	if !ok {
		return Summary{Median: unknown, Lo: unknown, Hi: unknown}
	}
	q := ratioOfLogs(logsOf(m.values))
	if m.beyond > 0 || !q.Value.Known() {
		return m
	}
	m.Median, m.Lo, m.Hi, m.Confidence, m.Exact = q.Value, unknown, unknown, 0, false
	if m.N > 2 && q.Lo.Known() { // of two trials Student's interval says nothing
		m.Lo, m.Hi, m.Confidence, m.Exact = q.Lo, q.Hi, q.Confidence, true
	}
	return m
}

// logsOf are logarithms; nil: not all have one.
func logsOf(xs []float64) []float64 {
	var logs []float64
	for _, x := range xs {
		if !(x > 0) {
			return nil
		}
		logs = append(logs, math.Log(x))
	}
	return logs
}

// metric is a median, of the time until it can serve a geometric mean; NaN: there is
// none.
func (s *Synced) metric(key string) float64 {
	if key == "sync_time" {
		if s.time.Median.Known() {
			return float64(s.time.Median)
		}
		return math.NaN()
	}
	if m, ok := s.cell.Metrics[key]; ok {
		return float64(m.Median)
	}
	return math.NaN()
}

// defaults names the default cells and compares the others with them: in each
// system and under the same conditions, trials of the same block.
func (r *Report) defaults(*input) {
	r.factors = r.syncFactors()
	r.Baseline = ""
	bases := map[string]*Cell{}
	key := func(c *Cell) string { return c.System + "\x00" + r.conditions(c) }
	for _, c := range r.cells() {
		c.Baseline = len(r.changes(c)) == 0
		if c.Baseline {
			bases[key(c)] = c
		}
	}
	for _, k := range r.compared() {
		m, _ := r.metric(k)
		var family []*Cell
		var ps []float64
		for _, c := range r.cells() {
			base := bases[key(c)]
			if base == nil || base == c {
				continue
			}
			xs, ys, _ := paired(c.Metrics[k], base.Metrics[k])
			if len(xs) == 0 {
				continue
			}
			if c.Ratios == nil {
				c.Ratios = map[string]Ratio{}
			}
			q := geometric(xs, ys)
			c.Ratios[k] = q
			family, ps = append(family, c), append(ps, float64(q.P))
		}
		adjusted := stats.Holm(ps)
		for i, c := range family {
			q := c.Ratios[k]
			q.PHolm = Num(adjusted[i])
			q.Shown = q.Shown && q.PHolm <= alpha
			q.Better = direction(q.Shown, float64(q.Value), m.Better)
			c.Ratios[k] = q
		}
	}
}

// geometric is the ratio of geometric means over pairs, with Student's interval and
// test on the logarithms, as the effects and the steps have them: all ratios of a page
// say the same. Where a value is 0 there is no such mean, and the ratio is that of the
// medians, without an interval.
func geometric(xs, ys []float64) Ratio {
	var logs []float64
	for i := range xs {
		if !(xs[i] > 0 && ys[i] > 0) {
			return Ratio{N: len(xs), Value: Num(middle(xs) / middle(ys)), Lo: unknown, Hi: unknown, P: unknown, PHolm: unknown, Warn: "some values are 0"}
		}
		logs = append(logs, math.Log(xs[i]/ys[i]))
	}
	return ratioOfLogs(logs)
}

// ratioOfLogs is the mean of the logarithms of ratios, as a ratio. It is shown when
// its interval excludes 1.
func ratioOfLogs(logs []float64) Ratio {
	q := Ratio{N: len(logs), Value: unknown, Lo: unknown, Hi: unknown, P: unknown, PHolm: unknown}
	n := float64(len(logs))
	if n == 0 {
		return q
	}
	mean := total(logs) / n
	q.Value = Num(math.Exp(mean))
	squares := 0.0
	for _, v := range logs {
		squares += (v - mean) * (v - mean)
	}
	if n < 2 {
		q.Warn = "one pair of trials shows nothing"
		return q
	}
	if squares == 0 {
		q.Warn = "all pairs are the same to the last digit: no noise was measured"
		return q
	}
	student := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}
	off := math.Sqrt(squares / (n - 1) / n)
	half := student.Quantile(1-alpha/2) * off
	q.Lo, q.Hi, q.Confidence = Num(math.Exp(mean-half)), Num(math.Exp(mean+half)), Confidence
	q.P = Num(2 * student.CDF(-math.Abs(mean)/off))
	q.PHolm = q.P
	q.Shown = q.Lo > 1 || q.Hi < 1
	return q
}

// PeerUsed is what peers of one kind delivered, over the valid trials of a cell.
type PeerUsed struct {
	Kind string `json:"kind"` // "honest", "silent", "stranger"
	// Bit/s towards the node, from the slowest to the fastest of them; 0: unlimited;
	// null: not told.
	Rate     Num `json:"rate"`
	RateTo   Num `json:"rate_to"`
	Peers    int `json:"peers"`
	Useful   int `json:"useful"` // delivered a block
	Share    Num `json:"share"`  // of a trial's blocks, mean
	Busy     Num `json:"busy"`   // seconds to deliver them, mean; null: not told
	Timeouts Num `json:"timeouts"`
	Failed   Num `json:"failed"`
}

// mostRates are as many rates as have a row of their own. Drawn ones are more, and
// each another one: these are put together by the powers of two between them.
const mostRates = 4

// rateClass is the class of a rate among those of a cell.
func (s *Synced) rateClass() func(rate float64) float64 {
	seen := map[float64]bool{}
	for _, t := range s.trials {
		for _, p := range t.peers {
			if p.rate > 0 {
				seen[p.rate] = true
			}
		}
	}
	return func(rate float64) float64 {
		if len(seen) <= mostRates || !(rate > 0) {
			return rate
		}
		return math.Exp2(math.Floor(math.Log2(rate)))
	}
}

// peersUsed groups peers of all trials by manner and rate, fast ones first.
func (s *Synced) peersUsed() []PeerUsed {
	type kind struct{ manner, rate float64 }
	class := s.rateClass()
	sums := map[kind]*PeerUsed{}
	busy, timeouts, failed, shares := map[kind][]float64{}, map[kind][]float64{}, map[kind][]float64{}, map[kind][]float64{}
	var order []kind
	for _, t := range s.trials {
		all := 0.0
		for _, p := range t.peers {
			all += max(0, p.blocks)
		}
		for _, p := range t.peers {
			k := kind{p.manner, class(p.rate)}
			if math.IsNaN(k.manner) {
				k.manner = peerHonest
			}
			if math.IsNaN(k.rate) {
				k.rate = -1
			}
			u := sums[k]
			if u == nil {
				u = &PeerUsed{Kind: map[float64]string{peerHonest: "honest", peerSilent: "silent", peerStranger: "stranger"}[k.manner], Rate: Num(p.rate), RateTo: Num(p.rate)}
				if k.rate < 0 {
					u.Rate, u.RateTo = unknown, unknown
				}
				sums[k], order = u, append(order, k)
			}
			if k.rate > 0 {
				u.Rate, u.RateTo = min(u.Rate, Num(p.rate)), max(u.RateTo, Num(p.rate))
			}
			u.Peers++
			if p.blocks > 0 {
				u.Useful++
			}
			if all > 0 && !math.IsNaN(p.blocks) {
				shares[k] = append(shares[k], p.blocks/all)
			}
			busy[k], timeouts[k], failed[k] = finite(busy[k], p.busy), finite(timeouts[k], p.timeouts), finite(failed[k], p.failed)
		}
	}
	mean := func(xs []float64) Num {
		if len(xs) == 0 {
			return unknown
		}
		return Num(total(xs) / float64(len(xs)))
	}
	slices.SortStableFunc(order, func(a, b kind) int {
		switch {
		case a.manner != b.manner:
			return int(a.manner - b.manner)
		case a.rate == b.rate:
			return 0
		case a.rate == 0 || b.rate != 0 && a.rate > b.rate:
			return -1
		}
		return 1
	})
	var out []PeerUsed
	for _, k := range order {
		u := sums[k]
		u.Share, u.Busy, u.Timeouts, u.Failed = mean(shares[k]), mean(busy[k]), mean(timeouts[k]), mean(failed[k])
		out = append(out, *u)
	}
	return out
}
