package disseminate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// view keeps what was read of each trial, for the tables.
type view struct{ swarms map[*analysis.Trial]*swarm }

// shares of the content at which the way to completion is reported, as in the study that
// the scenario follows.
var shares = [...]float64{0.01, 0.05, 0.25, 0.50, 0.75, 0.95, 1}

const (
	leecherTime = "leecher_time"
	leecherDisk = "leecher_disk"
	verified    = "verified"
	unfinished  = "unfinished" // a leecher's span
)

// reachedKey is the metric of the time until a share is reached: by the median leecher
// since its own release, or by all together since the first release.
func reachedKey(together bool, share float64) string {
	switch {
	case together:
		return fmt.Sprintf("together_%.0f", 100*share)
	case share == 1:
		return "time_median"
	}
	return fmt.Sprintf("reached_%.0f", 100*share)
}

func metrics() []record.Metric {
	all := []record.Metric{
		{Key: leecherTime, Name: "time until a leecher has it", Unit: "s", Better: record.Lower, Help: "of each leecher, from its release to its last verified byte"},
		{Key: leecherDisk, Name: "time until a leecher has it on disk", Unit: "s", Better: record.Lower, Help: "of each leecher, from its release"},
		{Key: verified, Name: "verified content", Unit: "ratio", Better: record.Higher, Help: "of all leechers that were to finish, since the first release"}}
	for i, s := range shares {
		all = append(all, record.Metric{Key: reachedKey(true, s), Name: fmt.Sprintf("time until all leechers together have %.0f %%", 100*s), Unit: "s", Better: record.Lower,
			Help: "of all content that leechers are to have, since the first release"})
		if i < len(shares)-1 {
			all = append(all, record.Metric{Key: reachedKey(false, s), Name: fmt.Sprintf("time until a leecher has %.0f %%, median", 100*s), Unit: "s", Better: record.Lower,
				Help: "since its own release"})
		}
	}
	return all
}

// swarm is what one trial recorded of its nodes. Times are seconds since the trial's
// epoch, and ends of polls; NaN: it did not come to that.
type swarm struct {
	size     float64
	release  float64 // the first leecher's
	leechers []leecher
	together [len(shares)]float64
	progress []analysis.Point
	nodes    []node
	events   []record.Event
}

type leecher struct {
	node                       int
	release, first, done, disk float64
	end                        float64 // when the outcome was decided
	outcome                    record.Outcome
	class                      string
	got                        float64 // bytes verified at the end
	reached                    [len(shares)]float64
}

// node is what a node used in a trial. NaN: not known.
type node struct {
	at                       int
	name                     string
	seeder                   bool
	received, sent, cpu, rss float64
}

// read is what a trial's operations, marks, details and events say of its nodes. An
// operation is a leecher's fetch.
func (v *view) read(t *analysis.Trial, facts *record.Reader) (analysis.Facts, error) {
	if t.State != record.Done {
		return analysis.Facts{}, nil
	}
	s := &swarm{release: math.Inf(1), nodes: nodesOf(t.Details)}
	for op, err := range facts.Ops(t.ID) {
		if err != nil {
			return analysis.Facts{}, err
		}
		l := leecherOf(op)
		s.leechers = append(s.leechers, l)
		s.size, s.release = max(s.size, float64(op.Length)), min(s.release, l.release)
	}
	if len(s.leechers) == 0 {
		return analysis.Facts{}, nil // of a damaged directory, or none was released
	}
	slices.SortStableFunc(s.leechers, func(a, b leecher) int { return cmp.Compare(a.node, b.node) })
	for e, err := range facts.EventsOf(t.ID) {
		if err != nil {
			return analysis.Facts{}, err
		}
		if e.Kind == "fault" || e.Kind == "node" {
			s.events = append(s.events, e)
		}
	}
	var marks []record.Mark
	for m, err := range facts.Marks(t.ID) {
		if err != nil {
			return analysis.Facts{}, err
		}
		marks = append(marks, m)
	}
	s.follow(marks)
	v.swarms[t] = s
	out := s.facts(t)
	s.progress = nil // the tables need none of it, and there is a point for every poll
	return out, nil
}

func leecherOf(op record.Op) leecher {
	seconds := func(ns int64) float64 { return float64(ns) / 1e9 }
	nan := math.NaN()
	l := leecher{node: int(op.Worker), release: seconds(op.Intended), first: nan, done: nan, disk: nan, end: seconds(op.LastByte),
		outcome: op.Outcome, class: op.Class, got: float64(op.Bytes)}
	for i := range l.reached {
		l.reached[i] = nan
	}
	if op.FirstByte > 0 {
		l.first = seconds(op.FirstByte)
	}
	if op.Outcome == record.OK {
		l.done, l.reached[len(shares)-1] = l.end, l.end
	}
	return l
}

// nodesOf takes the nodes of a trial from its details: one of each kind per node. What
// is not known is negative, and so is a node that took no part.
func nodesOf(details []record.Detail) []node {
	values := map[string][]record.Detail{}
	for _, d := range details {
		values[d.Kind] = append(values[d.Kind], d)
	}
	at := func(kind string, i int) float64 {
		if i < len(values[kind]) && values[kind][i].Value >= 0 {
			return values[kind][i].Value
		}
		return math.NaN()
	}
	var all []node
	for i, d := range values[record.DetailSeeder] {
		if d.Value >= 0 {
			all = append(all, node{i, d.Name, d.Value == 1, at(record.DetailLinkReceived, i), at(record.DetailLinkSent, i),
				at(record.DetailNodeCPU, i), at(record.DetailNodeRSS, i)})
		}
	}
	return all
}

// follow reads from the marks how far each leecher was when.
func (s *swarm) follow(marks []record.Mark) {
	at := map[int]*leecher{}
	all := 0.0
	for i := range s.leechers {
		l := &s.leechers[i]
		at[l.node] = l
		if wanted(l.outcome) {
			all += s.size
		}
	}
	for i := range s.together {
		s.together[i] = math.NaN()
	}
	// A leecher is polled once more after its outcome was decided: what that poll saw
	// came after its end.
	marks = slices.DeleteFunc(marks, func(m record.Mark) bool {
		l := at[m.Node]
		return l == nil || l.outcome != record.OK && m.End.Seconds() > l.end+1e-9
	})
	slices.SortStableFunc(marks, func(a, b record.Mark) int { return cmp.Compare(a.End, b.End) })
	have, total := map[int]float64{}, 0.0
	for _, m := range marks {
		l, got, now := at[m.Node], min(float64(m.Verified), s.size), m.End.Seconds()
		switch {
		case got < s.size: // all that was there before is lost
			l.disk = math.NaN()
		case l.outcome == record.OK && math.IsNaN(l.disk) && m.Complete && (m.Written < 0 || float64(m.Written) >= s.size):
			l.disk = now
		}
		if l.outcome == record.WrongBytes { // such content was never there
			continue
		}
		for i, x := range shares[:len(shares)-1] {
			if math.IsNaN(l.reached[i]) && got >= x*s.size && got > 0 {
				l.reached[i] = now
			}
		}
		if !wanted(l.outcome) || got == have[m.Node] {
			continue
		}
		total += got - have[m.Node]
		have[m.Node] = got
		s.progress = append(s.progress, analysis.Point{At: now - s.release, Value: total / all, Lo: math.NaN(), Hi: math.NaN()})
		for i, x := range shares {
			if math.IsNaN(s.together[i]) && total >= x*all {
				s.together[i] = now
			}
		}
	}
	if last := s.last(); len(marks) == 0 || math.IsNaN(s.together[len(shares)-1]) && !math.IsNaN(last) {
		s.together[len(shares)-1] = last
	}
}

// last is when the last of the leechers that were wanted had everything; NaN: one never
// had.
func (s *swarm) last() float64 {
	last := math.Inf(-1)
	for _, l := range s.leechers {
		if wanted(l.outcome) {
			last = max(last, l.done) // NaN if one of them is
		}
	}
	if math.IsInf(last, -1) {
		return math.NaN()
	}
	return last
}

// median is the time in which half of the leechers came to a moment, +Inf when they did
// not. Who failed never would have; who was cut off is known to have taken longer than
// it was watched.
func (s *swarm) median(share int) float64 {
	var all []stats.Lifetime
	for _, l := range s.leechers {
		x := stats.Lifetime{Time: l.end - l.release}
		if at := l.reached[share]; !math.IsNaN(at) {
			x = stats.Lifetime{Time: at - l.release, Happened: true}
		} else if l.outcome.ServerFailure() {
			x.Time = math.Inf(1)
		}
		all = append(all, x)
	}
	return stats.ProductLimit(all, 0.5)
}

// mostPoints is how many points of a trial are drawn.
const mostPoints = 200

func (s *swarm) facts(t *analysis.Trial) analysis.Facts {
	out := analysis.Facts{Metrics: metrics()}
	row := func(entity, metric string, v float64) {
		r := analysis.Row{Trial: t, Entity: entity, Metric: metric, Value: v}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			r.Value, r.Censored = math.Inf(1), true
		}
		out.Rows = append(out.Rows, r)
	}
	for i, x := range shares {
		row("", reachedKey(true, x), s.together[i]-s.release)
		if i < len(shares)-1 {
			row("", reachedKey(false, x), s.median(i))
		}
	}
	names := map[int]string{}
	for _, n := range s.nodes {
		names[n.at] = n.name
	}
	span := func(l leecher, kind string, from, to float64, note string) {
		if to > from {
			out.Spans = append(out.Spans, analysis.Span{Trial: t, Entity: names[l.node], Kind: kind, From: from - s.release, To: to - s.release, Note: note,
				Failed: kind == unfinished})
		}
	}
	for _, l := range s.leechers {
		if names[l.node] == "" {
			names[l.node] = fmt.Sprintf("node %02d", l.node+1)
		}
		if wanted(l.outcome) {
			row(names[l.node], leecherTime, l.done-l.release)
			row(names[l.node], leecherDisk, l.disk-l.release)
		}
		first, ended := l.first, l.outcome.String()
		if l.class != "" {
			ended += ": " + l.class
		}
		if math.IsNaN(first) {
			if first = l.end; !math.IsNaN(l.done) {
				first = l.release
			}
		}
		span(l, "waiting", l.release, first, "")
		if math.IsNaN(l.done) {
			span(l, unfinished, first, l.end, fmt.Sprintf("%.0f %% of the content, then %s", 100*l.got/s.size, ended))
			out.Spans = append(out.Spans, analysis.Span{Trial: t, Entity: names[l.node], Kind: "end", From: l.end - s.release, To: l.end - s.release, Note: ended})
			continue
		}
		span(l, "fetching", first, l.done, "")
		span(l, "writing to disk", l.done, l.disk, "")
	}
	out.Spans = append(out.Spans, s.happened(t)...)
	every := len(s.progress)/mostPoints + 1
	series := analysis.Series{Trial: t, Metric: verified}
	for i, p := range s.progress {
		if i%every == 0 || i == len(s.progress)-1 {
			series.Points = append(series.Points, p)
		}
	}
	if len(series.Points) > 0 {
		out.Series = []analysis.Series{series}
	}
	return out
}

// happened are the faults, of all nodes, and what happened to single ones.
func (s *swarm) happened(t *analysis.Trial) []analysis.Span {
	var all []analysis.Span
	for _, e := range s.events {
		at := e.At.Sub(t.Epoch).Seconds() - s.release
		x := analysis.Span{Trial: t, Kind: e.Kind, From: at, To: at, Note: e.What}
		if e.Detail != "" {
			x.Note += " (" + e.Detail + ")"
		}
		what, begins := strings.CutSuffix(e.What, " begins")
		switch {
		case e.Kind == "node":
			words := strings.FieldsFunc(e.What+" "+e.Detail, func(c rune) bool { return strings.ContainsRune(" ,;:()", c) })
			for _, n := range s.nodes {
				if n.name != "" && slices.Contains(words, n.name) {
					x.Entity = n.name
				}
			}
		case begins:
			for _, later := range s.events {
				if later.Kind == e.Kind && later.What == what+" ends" && later.Detail == e.Detail && later.At.After(e.At) && x.To == x.From {
					x.To = later.At.Add(later.Took).Sub(t.Epoch).Seconds() - s.release
				}
			}
		}
		all = append(all, x)
	}
	return all
}
