package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// Swarm is what became of the leechers of one cell of the scenario disseminate.
type Swarm struct {
	Cell     string `json:"cell"`
	System   string `json:"system"`
	Where    string `json:"where"`
	Nodes    int    `json:"nodes"`
	Seeders  int    `json:"seeders"`
	Size     int64  `json:"size"`
	Faults   string `json:"faults"`
	Trials   int    `json:"trials"` // valid
	Leechers int64  `json:"leechers"`
	// Outcomes of the leechers; those that a fault took away on purpose are in no
	// rate but that of cancelled, which is of all.
	Outcomes map[string]Rate `json:"outcomes"`
	Line     Num             `json:"line"` // seconds; null where the load line says nothing
	// Share of the content to seconds: of a leecher, from its own release, and of
	// all leechers together, from the first release.
	Leecher  []Reached  `json:"leecher"`
	Together []Reached  `json:"together"`
	Against  []Ratio    `json:"against,omitempty"` // time to the median and to the last leecher, divided by those of the same cell without faults
	Traffic  []NodeKind `json:"traffic,omitempty"`
	// How often the cell's faults came; none where it has none.
	FaultCounts []FaultCount `json:"fault_counts,omitempty"`
	Shown       int64        `json:"shown,omitempty"` // the trial of the timeline
	// UnfairSeeders is the largest seeder's part of what the seeders sent, times their
	// number: 1 is fair. Null with one seeder.
	UnfairSeeders Num `json:"unfair_seeders"`

	cell   *Cell
	trials []swarmTrial
}

// swarmTrial is one valid trial of a cell.
type swarmTrial struct {
	*Trial
	*spread
}

// Rate is a share of leechers. Leechers of one trial share its fate, so its
// interval is for as many independent ones as they are worth.
type Rate struct {
	N     int64 `json:"n"`
	Of    int64 `json:"of"`
	Value Num   `json:"value"`
	Lo    Num   `json:"lo"`
	Hi    Num   `json:"hi"`
	Worth int64 `json:"worth"`
}

// Reached is how long it took until a share of the content was there.
type Reached struct {
	Share  float64 `json:"share"`
	N      int     `json:"n"`      // valid trials
	Beyond int     `json:"beyond"` // of them, those that never came to it
	Median Num     `json:"median"`
	Lo     Num     `json:"lo"`
	Hi     Num     `json:"hi"`

	least, most Num // over the trials that came to it
}

// NodeKind is what nodes of one kind used: medians over trials of the median over
// the kind's nodes.
type NodeKind struct {
	Kind     string `json:"kind"` // "seeder", "leecher"
	Nodes    int    `json:"nodes"`
	Trials   int    `json:"trials"`
	Received Num    `json:"received"` // from the link, per content byte
	Sent     Num    `json:"sent"`
	CPU      Num    `json:"cpu"`       // seconds
	RSS      Num    `json:"rss"`       // bytes
	RSSMost  Num    `json:"rss_most"`  // of the largest node
	SentMost Num    `json:"sent_most"` // of the node that sent most, per content byte
}

const (
	seederKind  = "seeder"
	leecherKind = "leecher"
)

// swarm fills the account of every cell.
func (r *Report) swarm(*input) {
	r.Swarms = []Swarm{}
	for _, c := range r.cells() {
		d := c.plan.Disseminate
		if d == nil {
			continue
		}
		s := Swarm{Cell: c.ID, System: c.System, Where: r.shape.where(c), Nodes: d.Nodes, Seeders: d.Seeders, Size: int64(c.plan.Data.Size), Faults: d.Faults, Line: unknown, UnfairSeeders: unknown, cell: c}
		if m, ok := c.Metrics["line"]; ok {
			s.Line = m.Median
		}
		for i := range r.Trials {
			t := &r.Trials[i]
			if t.Info == c && t.Valid() && r.swarms[t.ID] != nil {
				s.trials = append(s.trials, swarmTrial{t, r.swarms[t.ID]})
				s.Leechers += int64(len(r.swarms[t.ID].leechers))
			}
		}
		s.Trials = len(s.trials)
		s.FaultCounts = s.faulted()
		s.count()
		s.complete()
		s.use()
		s.Shown = s.choose()
		r.Swarms = append(r.Swarms, s)
	}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		s.Against = r.withoutFaults(s)
	}
}

// count fills the rates of the outcomes.
func (s *Swarm) count() {
	s.Outcomes = map[string]Rate{}
	for _, o := range record.Outcomes() {
		var parts []stats.Count
		for _, t := range s.trials {
			var p stats.Count
			for i := range t.leechers {
				f := &t.leechers[i]
				if f.wanted() || o == record.Cancelled || o == record.InFlight {
					p.N++
				}
				if f.outcome == o {
					p.K++
				}
			}
			parts = append(parts, p)
		}
		if q := rateOf(parts); q.N > 0 || o == record.OK && q.Of > 0 {
			s.Outcomes[o.String()] = q
		}
	}
}

// ok is the rate of those who got everything.
func (s *Swarm) ok() Rate {
	if q, there := s.Outcomes[record.OK.String()]; there {
		return q
	}
	return Rate{Value: unknown, Lo: unknown, Hi: unknown}
}

// unfinished are the leechers that were wanted and did not get everything.
func (s *Swarm) unfinished() int64 { q := s.ok(); return q.Of - q.N }

// complete fills the way to completion.
func (s *Swarm) complete() {
	s.Leecher, s.Together = []Reached{}, []Reached{}
	for i, share := range shares {
		s.Leecher = append(s.Leecher, s.reached(share, func(t swarmTrial) float64 {
			return t.reach(0.5, func(f *fetched) float64 { return f.reached[i] })
		}))
		s.Together = append(s.Together, s.reached(share, func(t swarmTrial) float64 { return t.together[i] - t.release }))
	}
}

// reached summarises a time over the trials; NaN or +Inf: that trial never came to it.
func (s *Swarm) reached(share float64, of func(swarmTrial) float64) Reached {
	q := Reached{Share: share, N: s.Trials, Median: unknown, Lo: unknown, Hi: unknown, least: unknown, most: unknown}
	var known []float64
	for _, t := range s.trials {
		v := of(t)
		if math.IsNaN(v) || math.IsInf(v, 1) {
			q.Beyond++
			continue
		}
		known = append(known, v)
		q.least, q.most = least(q.least, v), highest(q.most, v)
	}
	if len(known) > 0 {
		m := summaryOf(known, nil).with(q.Beyond)
		q.Median, q.Lo, q.Hi = m.Median, m.Lo, m.Hi
		if s.Trials == 1 {
			q.Lo, q.Hi = unknown, unknown
		}
	}
	return q
}

// use fills what nodes used.
func (s *Swarm) use() {
	for _, kind := range []string{seederKind, leecherKind} {
		k := NodeKind{Kind: kind}
		values := map[*Num][]float64{}
		for _, t := range s.trials {
			var received, sent, cpu, rss []float64
			for _, n := range t.nodes {
				if n.seeder != (kind == seederKind) {
					continue
				}
				received, sent = finite(received, n.received/t.size), finite(sent, n.sent/t.size)
				cpu, rss = finite(cpu, n.cpu), finite(rss, n.rss)
			}
			if len(received)+len(sent)+len(cpu)+len(rss) == 0 {
				continue
			}
			k.Trials++
			k.Nodes = max(k.Nodes, len(received), len(sent), len(cpu), len(rss))
			add := func(into *Num, v float64, n int) {
				if n > 0 {
					values[into] = append(values[into], v)
				}
			}
			add(&k.Received, middle(received), len(received))
			add(&k.Sent, middle(sent), len(sent))
			add(&k.CPU, middle(cpu), len(cpu))
			add(&k.RSS, middle(rss), len(rss))
			add(&k.RSSMost, largest(rss), len(rss))
			add(&k.SentMost, largest(sent), len(sent))
		}
		if k.Trials == 0 {
			continue
		}
		for _, into := range []*Num{&k.Received, &k.Sent, &k.CPU, &k.RSS, &k.RSSMost, &k.SentMost} {
			*into = unknown
			if len(values[into]) > 0 {
				*into = Num(middle(values[into]))
			}
		}
		s.Traffic = append(s.Traffic, k)
	}
	if unfair := s.busiestSeeder(); unfair != nil {
		s.UnfairSeeders = Num(middle(unfair))
	}
}

func finite(to []float64, v float64) []float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return to
	}
	return append(to, v)
}

func largest(xs []float64) float64 {
	most := math.Inf(-1)
	for _, x := range xs {
		most = max(most, x)
	}
	return most
}

func total(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum
}

// choose picks the trial that is drawn node by node: of the valid trials in which
// every leecher that was wanted got everything, the one whose last leecher is at the
// median (the lower middle; of equal ones the first); where there is none, of
// all valid trials the one with the median number of leechers that did.
func (s *Swarm) choose() int64 {
	pick := func(value func(swarmTrial) float64) int64 {
		var values []float64
		var ids []int64
		for _, t := range s.trials {
			if v := value(t); !math.IsNaN(v) {
				values, ids = append(values, v), append(ids, t.ID)
			}
		}
		for i, v := range values {
			below, upTo := 0, 0
			for _, w := range values {
				if w < v {
					below++
				}
				if w <= v {
					upTo++
				}
			}
			if at := (len(values) - 1) / 2; below <= at && at < upTo {
				return ids[i]
			}
		}
		return 0
	}
	if id := pick(func(t swarmTrial) float64 { return t.last() - t.release }); id != 0 {
		return id
	}
	return pick(func(t swarmTrial) float64 { return float64(t.Outcomes[record.OK.String()]) })
}

// chooseWords is the rule of choose, for captions.
const chooseWords = "Shown is one valid trial of each cell: the one whose last leecher was done at the median over the trials (the lower middle), or, where no trial was finished, the one with the median number of leechers done."

// calm reports whether nothing is done to the swarm and all leechers start
// together: only then does the load line say something.
func (s *Swarm) calm() bool { return s.quiet() && s.together() }

// quiet reports whether the cell has no faults.
func (s *Swarm) quiet() bool { return s.Faults == "" || s.Faults == noFaults }

// together reports whether all leechers are released at one barrier.
func (s *Swarm) together() bool {
	j := s.cell.plan.Disseminate.Join
	return j == "" || j == "together"
}

const noFaults = "none"

// shown is the trial of the timeline; false where there is none.
func (s *Swarm) shown() (swarmTrial, bool) {
	for _, t := range s.trials {
		if t.ID == s.Shown {
			return t, true
		}
	}
	return swarmTrial{}, false
}

// name is the cell in words.
func (s *Swarm) name() string {
	if s.Where == "" {
		return s.System
	}
	return s.System + ", " + s.Where
}

// rest is what a cell is besides its system and its faults: cells that share it
// differ in nothing else.
func (s *Swarm) rest() string {
	var parts []string
	for _, f := range s.cell.Factors {
		if f.Path != "system" && f.Path != faultsPath {
			parts = append(parts, f.Path+"="+f.Value)
		}
	}
	return strings.Join(parts, " ")
}

// withoutFaults compares a cell that has faults with the same one that has none,
// block by block: the time to the median leecher and to the last.
func (r *Report) withoutFaults(s *Swarm) []Ratio {
	if s.quiet() {
		return nil
	}
	for i := range r.Swarms {
		calm := &r.Swarms[i]
		if !calm.quiet() || calm.System != s.System || calm.rest() != s.rest() {
			continue
		}
		var all []Ratio
		for _, key := range []string{"time_median", "time_last"} {
			xs, ys, _ := paired(s.cell.Metrics[key], calm.cell.Metrics[key])
			if len(xs) == 0 {
				all = append(all, Ratio{Value: unknown, Lo: unknown, Hi: unknown, P: unknown, PHolm: unknown, Warn: r.whyNoRatio(s, calm, key)})
				continue
			}
			q := ratioOf(xs, ys, 1)
			q.decide(record.Lower)
			all = append(all, q)
		}
		return all
	}
	return nil
}

func (r *Report) whyNoRatio(s, base *Swarm, key string) string {
	for _, x := range []*Swarm{s, base} {
		if n := x.beyond(key); n > 0 {
			return fmt.Sprintf("%s never came to it in %d of %s", x.System, n, plural(int64(x.Trials), "trial", "trials"))
		}
	}
	return "no block in which both have a valid trial"
}

// beyond counts the valid trials that never came to the moment of a time.
func (s *Swarm) beyond(key string) int {
	n := 0
	for _, t := range s.trials {
		if _, told := t.Metrics[key]; !told && censoredAway(key, t.Trial.Trial) {
			n++
		}
	}
	return n
}

const (
	nodesPath   = "disseminate.nodes"
	seedersPath = "disseminate.seeders"
	faultsPath  = "disseminate.faults"
	ratioPath   = "disseminate.seeders/nodes"
)

// byRatio puts cells into panels by the share of seeders among the nodes where
// that needs no more panels than their number does: the study's grid has the
// same shares at every number of nodes.
func byRatio(s *shape, cells []*Cell) {
	if s.axis == nil || s.axis.Path != nodesPath {
		return
	}
	ratios, counts := map[float64]bool{}, map[float64]bool{}
	for _, c := range cells {
		d := c.plan.Disseminate
		if d == nil || d.Nodes == 0 {
			return
		}
		ratios[seederRatio(d)], counts[float64(d.Seeders)] = true, true
	}
	if len(counts) < 2 || len(ratios) > len(counts) {
		return
	}
	for i, p := range s.facets {
		if p == seedersPath {
			s.facets[i] = ratioPath
		}
	}
}

// seederRatio is s / n.
func seederRatio(d *experiment.ResolvedDisseminate) float64 {
	return float64(d.Seeders) / float64(d.Nodes)
}
