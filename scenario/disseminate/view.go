// Package disseminate contains the scenario disseminate, which measures how fast content spreads
// from seeders to leechers, with churn and faults.
package disseminate

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/nodes"
	"github.com/plimsoll-project/plimsoll/stats"
)

//go:embed view.yaml
var viewText string

// View returns the view of the results of disseminate.
func (Scenario) View() *analysis.View {
	v := analysis.ParseView(viewText)
	v.Headline = func(*experiment.Plan) string { return "time_median" }
	v.Read, v.Tables = read, tables
	v.Censors = func(t *analysis.Trial, metric string, cut bool) bool {
		recovered, faults := t.Metrics["recovered"]
		return cut || metric == "recovery" && faults && recovered < 1
	}
	v.SetConditions(map[string]func(*analysis.Result) []analysis.Case{"leechers-unfinished": leechersUnfinished,
		"partial-faults": partialFaults, "start-spread": spreadStart, "no-sharing": noSharing,
		"slow-recovery": slowRecovery})
	return v
}

// wanted reports whether a leecher with this outcome had to finish: the experiment did not end
// it on purpose.
func wanted(o record.Outcome) bool { return o != record.Cancelled && o != record.InFlight }

const (
	nearlyAll  = 0.90 // share of all bytes from seeders above which leechers do not share
	muchSpread = 0.05 // largest spread of starts, as a share of the median time
)

func spreadStart(r *analysis.Result) []analysis.Case {
	return r.Cases(func(c *analysis.Cell, x *analysis.Case) bool {
		apart, took := c.Metrics["start_spread"], c.Metrics["time_median"]
		x.Value, x.Limit = apart.Median, took.Median
		return c.Plan.Disseminate.Join.Together() && apart.N > 0 && took.N > 0 && apart.Median > muchSpread*took.Median
	})
}

// noSharing finds cells in which seeders send nearly all bytes. It omits raw baselines, whose
// leechers pass nothing on by design.
func noSharing(r *analysis.Result) []analysis.Case {
	alone := map[string]bool{}
	for _, s := range r.Frame.Plan.Experiment.Systems {
		alone[s.Name] = s.SeedersOnly
	}
	return r.Cases(func(c *analysis.Cell, x *analysis.Case) bool {
		s := c.Metrics["seeder_share"]
		x.Value = s.Median
		return s.N > 0 && s.Median > nearlyAll && c.Plan.Disseminate.Nodes-c.Plan.Disseminate.Seeders > 1 &&
			!alone[c.System]
	})
}

// tables returns the tables of faults and recovery, and of the time to each share.
func tables(f *analysis.Frame) []analysis.Table {
	return []analysis.Table{faultTable(f), completionTable(f)}
}

// summary returns a metric of a cell as a table entry.
func summary(c *analysis.Cell, metric string) analysis.Value {
	if s, ok := c.Metrics[metric]; ok {
		return analysis.Value{Number: s.Median, Lo: s.Lo, Hi: s.Hi}
	}
	return analysis.Text("")
}

func leechersUnfinished(r *analysis.Result) []analysis.Case {
	return r.Cases(func(c *analysis.Cell, x *analysis.Case) bool {
		x.N, x.Of = c.Success.Of-c.Success.OK, c.Success.Of
		var why []string
		for _, o := range record.Outcomes() {
			if n := c.Outcomes[o.String()]; n > 0 && o != record.OK && wanted(o) {
				why = append(why, fmt.Sprintf("%s ×%d", o, n))
			}
		}
		for _, class := range slices.Sorted(maps.Keys(c.Classes)) {
			if class != nodes.ClassCrashed && class != nodes.ClassCut {
				why = append(why, fmt.Sprintf("%s ×%d", class, c.Classes[class]))
			}
		}
		if faulty(c) {
			why = append(why, "with faults")
		}
		x.Text = strings.Join(why, ", ")
		return x.N > 0
	})
}

func faulty(c *analysis.Cell) bool { return len(c.Plan.Disseminate.Faults) > 0 }

// partialFaults counts the valid trials whose notes say that a fault did not happen in full.
func partialFaults(r *analysis.Result) (all []analysis.Case) {
	for _, c := range r.Cells {
		trials, missed := r.Frame.ValidTrials(c), map[string]int64{}
		for _, t := range trials {
			for _, note := range t.Notes {
				if strings.HasPrefix(note, nodes.NoteFault) {
					missed[note]++
				}
			}
		}
		for _, note := range slices.Sorted(maps.Keys(missed)) {
			all = append(all, analysis.Case{System: c.System, Name: r.Frame.Layout.Name(c), N: missed[note],
				Of: int64(len(trials)), Text: note})
		}
	}
	return all
}

func slowRecovery(r *analysis.Result) []analysis.Case {
	return r.Cases(func(c *analysis.Cell, x *analysis.Case) bool {
		outage, next, on := c.Metrics["outage"], c.Metrics["recovery"], c.Metrics["recovered"]
		if outage.N > 0 && next.N > 0 && next.Median > outage.Median {
			x.Text = fmt.Sprintf("%s to the next verified byte after an outage of %s",
				words.Show(float64(next.Median), "s"), words.Show(float64(outage.Median), "s"))
		} else if on.N > 0 && on.Median < 1 {
			x.Text = fmt.Sprintf("only %s of the nodes went on", words.Percent(float64(on.Median)))
		}
		return faulty(c) && x.Text != ""
	})
}

func faultTable(f *analysis.Frame) analysis.Table {
	t := f.View.Head("faults")
	rest := func(c *analysis.Cell) []analysis.Factor {
		return slices.DeleteFunc(slices.Clone(c.Factors),
			func(x analysis.Factor) bool { return x.Path == "disseminate.faults" })
	}
	for _, c := range f.Cells {
		if !faulty(c) || c.Valid == 0 {
			continue
		}
		row := []any{c.System, f.Layout.Where(c), summary(c, "outage"), summary(c, "recovery"), summary(c, "recovered")}
		alike := func(x *analysis.Cell) bool { return !faulty(x) && slices.Equal(rest(x), rest(c)) }
		calm := slices.IndexFunc(f.Cells, alike)
		for _, metric := range []string{"time_median", "time_last"} {
			ratio := analysis.Text("")
			if calm >= 0 {
				ratio = f.RatioTo(metric, c, f.Cells[calm])
			}
			row = append(row, ratio)
		}
		t.Add(row...)
	}
	return t
}

// completionTable returns the time to each share of the content.
func completionTable(f *analysis.Frame) analysis.Table {
	t := f.View.Head("completion")
	for _, c := range f.Cells {
		if c.Valid == 0 {
			continue
		}
		row := []any{c.System, f.Layout.Where(c)}
		for _, s := range shares {
			key := reachedKey(s)
			v := summary(c, key)
			if slices.ContainsFunc(f.Of(c, key), func(r analysis.Row) bool { return r.Censored }) {
				v.Tone = analysis.Warn
				if !v.Number.Known() {
					v.Text = "never"
				}
			}
			row = append(row, v)
		}
		t.Add(row...)
	}
	return t
}

// shares of the content for which the time is reported, as in the study that the scenario
// follows.
var shares = [...]float64{0.01, 0.05, 0.25, 0.50, 0.75, 0.95, 1}

const (
	leecherTime = "leecher_time"
	verified    = "verified"
	unfinished  = "unfinished" // kind of a leecher's span
)

// reachedKey returns the metric of the time until the median leecher has a share, since its own release.
func reachedKey(share float64) string {
	if share == 1 {
		return "time_median"
	}
	return fmt.Sprintf("reached_%.0f", 100*share)
}

// leecher holds the results of a leecher. Times are ends of polls, in nanoseconds since the
// trial's epoch; 0: not reached.
type leecher struct {
	fetch   record.Op
	name    string
	have    float64 // bytes, by the last mark that was read
	reached [len(shares)]int64
}

// mostPoints limits the points of a trial's series.
const mostPoints = 200

// read derives rows, spans and series of nodes from a trial's operations, marks, details and
// events.
func read(t *analysis.Trial, facts *record.Reader) (out analysis.Facts, err error) {
	if t.State != record.Done {
		return out, nil
	}
	ops := leecherOps(&scenario.Measured{Ops: scenario.UntilError(facts.Ops(t.ID), &err)})
	marks := slices.Collect(scenario.UntilError(facts.Marks(t.ID), &err))
	events := slices.Collect(scenario.UntilError(facts.EventsOf(t.ID), &err))
	if err != nil || len(ops) == 0 { // the directory is damaged, or no leecher was released
		return out, err
	}
	release, nodes := ops[0].Intended, map[int]*leecher{}
	names := map[int]string{} // names of the nodes that took part, by place
	for _, d := range t.Details {
		if d.Kind == record.DetailSeeder {
			names[len(names)] = d.Name
		}
	}
	var all []*leecher
	for _, op := range ops {
		place := int(op.Worker)
		l := &leecher{fetch: op, name: cmp.Or(names[place], fmt.Sprintf("node %02d", place+1))}
		all, nodes[place], release = append(all, l), l, min(release, op.Intended)
	}
	out.Metrics = scenario.Definitions(definitions, "nodes")
	row := func(entity, metric string, seconds float64) {
		r := analysis.Row{Trial: t, Entity: entity, Metric: metric, Value: seconds}
		if math.IsNaN(seconds) || math.IsInf(seconds, 0) {
			r.Value, r.Censored = math.Inf(1), true
		}
		out.Rows = append(out.Rows, r)
	}
	progress := follow(marks, nodes, release)
	for i, x := range shares[:len(shares)-1] {
		var lifetimes []stats.Lifetime
		for _, l := range all {
			lifetimes = append(lifetimes, lifetime(l.fetch, l.reached[i]))
		}
		row("", reachedKey(x), stats.ProductLimit(lifetimes, 0.5))
	}
	for _, l := range all {
		if wanted(l.fetch.Outcome) {
			took := math.Inf(1)
			if at := hadAll(l.fetch); at > 0 {
				took = float64(at-l.fetch.Intended) / 1e9
			}
			row(l.name, leecherTime, took)
		}
		out.Spans = append(out.Spans, l.life(t, release)...)
	}
	out.Spans = append(out.Spans, happened(t, events, release)...)
	if len(progress) > 0 {
		out.Series = []analysis.Series{{Trial: t, Metric: verified, Points: analysis.Thin(progress, mostPoints)}}
	}
	return out, nil
}

// follow derives from the marks when each leecher reached each share, and which share of all content
// the wanted leechers had, in seconds since the release.
func follow(marks []record.Mark, nodes map[int]*leecher, release int64) (progress []analysis.Point) {
	wants, total := 0.0, 0.0
	for _, l := range nodes {
		if wanted(l.fetch.Outcome) {
			wants += float64(l.fetch.Length)
		}
	}
	slices.SortStableFunc(marks, func(a, b record.Mark) int { return cmp.Compare(a.End, b.End) })
	for _, m := range marks {
		l := nodes[m.Node]
		if l == nil {
			continue
		}
		more := l.progress(m)
		if !wanted(l.fetch.Outcome) || more == 0 {
			continue
		}
		total += more
		at := float64(m.End.Nanoseconds()-release) / 1e9
		progress = append(progress, analysis.Point{At: at, Value: total / wants, Lo: math.NaN(), Hi: math.NaN()})
	}
	return progress
}

// progress processes a mark, and returns how many bytes more the leecher has. A poll after the
// outcome was decided does not count, and neither does wrong content.
func (l *leecher) progress(m record.Mark) (more float64) {
	ended := l.fetch.Outcome != record.OK && m.End.Nanoseconds() > l.fetch.LastByte
	if ended || l.fetch.Outcome == record.WrongBytes {
		return 0
	}
	size := float64(l.fetch.Length)
	got := min(float64(m.Verified), size)
	for i := range l.reached {
		if l.reached[i] == 0 && got >= shares[i]*size && got > 0 {
			l.reached[i] = m.End.Nanoseconds()
		}
	}
	more, l.have = got-l.have, got
	return more
}

// life returns the spans of a leecher from its release on.
func (l *leecher) life(t *analysis.Trial, release int64) (spans []analysis.Span) {
	op := l.fetch
	span := func(kind string, from, to int64, note string) {
		if to > from || kind == "end" {
			spans = append(spans, analysis.Span{Trial: t, Entity: l.name, Kind: kind, Note: note,
				From: float64(from-release) / 1e9, To: float64(to-release) / 1e9, Failed: kind == unfinished})
		}
	}
	first, ended := cmp.Or(op.FirstByte, op.LastByte), strings.TrimSuffix(op.Outcome.String()+": "+op.Class, ": ")
	span("waiting", op.Intended, first, "")
	if op.Outcome == record.OK {
		span("fetching", first, op.LastByte, "")
		return spans
	}
	span(unfinished, first, op.LastByte, fmt.Sprintf("%.0f %% of the content, then %s",
		100*float64(op.Bytes)/float64(op.Length), ended))
	span("end", op.LastByte, op.LastByte, ended)
	return spans
}

// happened returns the spans of faults, which concern all nodes, and of events of single nodes,
// whose detail begins with the node's name.
func happened(t *analysis.Trial, events []record.Event, release int64) (spans []analysis.Span) {
	at := func(e record.Event) float64 { return e.At.Sub(t.Epoch).Seconds() - float64(release)/1e9 }
	for i, e := range events {
		if e.Kind != "fault" && e.Kind != "node" {
			continue
		}
		x := analysis.Span{Trial: t, Kind: e.Kind, From: at(e), To: at(e),
			Note: strings.TrimSuffix(e.What+" ("+e.Detail+")", " ()")}
		what, begins := strings.CutSuffix(e.What, " begins")
		for _, end := range events[i:] {
			if begins && end.What == what+" ends" && end.Detail == e.Detail {
				x.To = at(end) + end.Took.Seconds()
				break
			}
		}
		if e.Kind == "node" {
			x.Entity, _, _ = strings.Cut(e.Detail, ":")
		}
		spans = append(spans, x)
	}
	return spans
}
