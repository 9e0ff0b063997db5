package disseminate

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// tables are how leechers ended, faults and recovery, the way to completion, and traffic.
func (v *view) tables(f *analysis.Frame) ([]analysis.Table, error) {
	var all []analysis.Table
	for _, t := range []analysis.Table{v.endTable(f), v.faultTable(f), completionTable(f), v.nodeTable(f)} {
		if len(t.Rows) > 0 {
			all = append(all, t)
		}
	}
	return all, nil
}

// of are the swarms of a cell's valid trials.
func (v *view) of(f *analysis.Frame, c *analysis.Cell) (trials []*analysis.Trial, all []*swarm) {
	for _, t := range f.ValidTrials(c) {
		if s := v.swarms[t]; s != nil {
			trials, all = append(trials, t), append(all, s)
		}
	}
	return trials, all
}

// ended counts the leechers of a cell with an outcome, with their reasons and the least
// and the largest share of the content that they had.
func (v *view) ended(f *analysis.Frame, c *analysis.Cell, o record.Outcome) (p analysis.Proportion, note string) {
	var parts []stats.Count
	classes := map[string]int64{}
	least, most := math.Inf(1), math.Inf(-1)
	_, swarms := v.of(f, c)
	for _, s := range swarms {
		var n stats.Count
		for _, l := range s.leechers {
			if wanted(l.outcome) || !wanted(o) {
				n.N++
			}
			if l.outcome == o {
				n.K++
				least, most = min(least, l.got/s.size), max(most, l.got/s.size)
				if l.class != "" {
					classes[l.class]++
				}
			}
		}
		parts = append(parts, n)
	}
	if p = analysis.Share(parts, true, analysis.Confidence); p.OK == 0 {
		return p, ""
	}
	var notes []string
	for _, k := range slices.Sorted(maps.Keys(classes)) {
		notes = append(notes, fmt.Sprintf("%s ×%d", k, classes[k]))
	}
	if o != record.WrongBytes {
		had := words.Percent(least)
		if upTo := words.Percent(most); upTo != had {
			had += " to " + upTo
		}
		notes = append(notes, had+" of the content")
	}
	return p, strings.Join(notes, ", ")
}

func (v *view) endTable(f *analysis.Frame) analysis.Table {
	t := analysis.Table{ID: "ends", Title: "Leechers that did not finish",
		Caption: "Shares of the leechers of valid trials, with intervals over trials. Cancelled leechers were taken away on purpose and are in no other share.",
		Head: []analysis.TableColumn{{Key: "system", Name: "system"}, {Key: "where", Name: "cell"}, {Key: "outcome", Name: "outcome"},
			{Key: "n", Name: "leechers", Unit: "1"}, {Key: "of", Name: "of", Unit: "1"}, {Key: "share", Name: "share", Unit: "ratio"}, {Key: "why", Name: "why"}}}
	for _, c := range f.Cells {
		for _, o := range record.Outcomes() {
			p, why := v.ended(f, c, o)
			if o == record.OK || p.OK == 0 {
				continue
			}
			share := analysis.Value{Number: p.Value, Lo: p.Lo, Hi: p.Hi}
			if wanted(o) {
				share.Tone = analysis.Bad
			}
			t.Rows = append(t.Rows, []analysis.Value{analysis.Text(c.System), analysis.Text(f.Layout.Where(c)), analysis.Text(o.String()),
				analysis.Number(float64(p.OK)), analysis.Number(float64(p.Of)), share, analysis.Text(why)})
		}
	}
	return t
}

func (v *view) unfinished(r *analysis.Result) []analysis.Case {
	return r.Cases(func(c *analysis.Cell, x *analysis.Case) bool {
		x.N, x.Of = c.Success.Of-c.Success.OK, c.Success.Of
		var why []string
		for _, o := range record.Outcomes() {
			if p, note := v.ended(r.Frame, c, o); p.OK > 0 && o != record.OK && wanted(o) {
				why = append(why, o.String()+": "+note)
			}
		}
		if faulty(c) {
			why = append(why, "with faults")
		}
		x.Text = strings.Join(why, "; ")
		return x.N > 0
	})
}

func faulty(c *analysis.Cell) bool {
	return len(c.Plan.Disseminate.Faults) > 0
}

// faultCount is in how many of a cell's valid trials a fault came, and was undone before
// the load was over.
type faultCount struct {
	fault                string
	trials, came, undone int
	ends                 bool // it is to be undone
}

func (v *view) faults(f *analysis.Frame, c *analysis.Cell) []faultCount {
	_, swarms := v.of(f, c)
	var all []faultCount
	for _, fault := range c.Plan.Disseminate.Faults {
		q := faultCount{fault: fault.String(), trials: len(swarms), ends: fault.For > 0}
		for _, s := range swarms {
			has := func(what string) bool {
				return slices.ContainsFunc(s.events, func(e record.Event) bool {
					return e.Kind == "fault" && e.What == string(fault.Kind())+what && strings.HasPrefix(e.Detail, q.fault+": ")
				})
			}
			if has(" begins") {
				q.came++
			}
			if has(" ends") {
				q.undone++
			}
		}
		all = append(all, q)
	}
	return all
}

func (v *view) partialFaults(r *analysis.Result) []analysis.Case {
	var all []analysis.Case
	for _, c := range r.Cells {
		for _, q := range v.faults(r.Frame, c) {
			x := analysis.Case{System: c.System, Name: r.Frame.Layout.Name(c), Of: int64(q.trials)}
			switch {
			case q.came < q.trials:
				x.N, x.Text = int64(q.came), q.fault+" came"
			case q.ends && q.undone < q.trials:
				x.N, x.Text = int64(q.undone), q.fault+" was undone before the end"
			default:
				continue
			}
			all = append(all, x)
		}
	}
	return all
}

func slowRecovery(r *analysis.Result) []analysis.Case {
	return r.Cases(func(c *analysis.Cell, x *analysis.Case) bool {
		outage, next, on := c.Metrics["outage"], c.Metrics["recovery"], c.Metrics["recovered"]
		if outage.N > 0 && next.N > 0 && next.Median > outage.Median {
			x.Text = fmt.Sprintf("%s to the next verified byte after an outage of %s", words.Show(float64(next.Median), "s"), words.Show(float64(outage.Median), "s"))
		} else if on.N > 0 && on.Median < 1 {
			x.Text = fmt.Sprintf("only %s of the nodes went on", words.Percent(float64(on.Median)))
		}
		return faulty(c) && x.Text != ""
	})
}

func (v *view) faultTable(f *analysis.Frame) analysis.Table {
	t := analysis.Table{ID: "faults", Title: "Faults and recovery",
		Caption: "An outage lasts from a fault's beginning until its nodes are ready or the links as before; recovery is the time from then to the next verified byte. Ratios are to the same cell without faults.",
		Head: []analysis.TableColumn{{Key: "system", Name: "system"}, {Key: "where", Name: "cell"}, {Key: "fault", Name: "fault"},
			{Key: "trials", Name: "trials", Unit: "1"}, {Key: "came", Name: "came", Unit: "1"}, {Key: "undone", Name: "undone", Unit: "1"},
			{Key: "outage", Name: "outage", Unit: "s"}, {Key: "recovery", Name: "recovery", Unit: "s"}, {Key: "recovered", Name: "recovered", Unit: "ratio"},
			{Key: "median", Name: "half of them, × without faults", Unit: "×"}, {Key: "last", Name: "the last, × without faults", Unit: "×"}}}
	for _, c := range f.Cells {
		for _, q := range v.faults(f, c) {
			undone := analysis.Text("")
			if q.ends {
				undone = analysis.Number(float64(q.undone))
			}
			t.Rows = append(t.Rows, []analysis.Value{analysis.Text(c.System), analysis.Text(f.Layout.Where(c)), analysis.Text(q.fault),
				analysis.Number(float64(q.trials)), analysis.Number(float64(q.came)), undone, summary(c, "outage"), summary(c, "recovery"),
				summary(c, "recovered"), withoutFaults(f, c, "time_median"), withoutFaults(f, c, "time_last")})
		}
	}
	return t
}

// summary is a metric of a cell as an entry.
func summary(c *analysis.Cell, metric string) analysis.Value {
	if s, ok := c.Metrics[metric]; ok {
		return analysis.Value{Number: s.Median, Lo: s.Lo, Hi: s.Hi}
	}
	return analysis.Text("")
}

// withoutFaults is a time divided by that of the same cell without faults, within blocks;
// none where a trial of either never came to it.
func withoutFaults(f *analysis.Frame, c *analysis.Cell, metric string) analysis.Value {
	rest := func(c *analysis.Cell) []analysis.Factor {
		return slices.DeleteFunc(slices.Clone(c.Factors), func(x analysis.Factor) bool { return x.Path == "disseminate.faults" })
	}
	for _, calm := range f.Cells {
		a, b := c.Metrics[metric], calm.Metrics[metric]
		if faulty(calm) || calm.System != c.System || !slices.Equal(rest(calm), rest(c)) || a.Censored+b.Censored > 0 {
			continue
		}
		var logs []float64
		for i, block := range a.Blocks {
			if j := slices.Index(b.Blocks, block); j >= 0 && a.Values[i] > 0 && b.Values[j] > 0 {
				logs = append(logs, math.Log(a.Values[i]/b.Values[j]))
			}
		}
		if len(logs) > 0 {
			i, _ := stats.PairedRatio(logs, analysis.Confidence)
			return analysis.Estimate(i)
		}
	}
	return analysis.Text("")
}

// completionTable is the time to each share of the content.
func completionTable(f *analysis.Frame) analysis.Table {
	t := analysis.Table{ID: "completion", Title: "The way to completion",
		Caption: "Time until a share of the content is verified, medians over trials: for the median leecher since its release, and for all together since the first release. Never counts as longer than any time.",
		Head:    []analysis.TableColumn{{Key: "system", Name: "system"}, {Key: "where", Name: "cell"}, {Key: "of", Name: "of"}}}
	for _, s := range shares {
		t.Head = append(t.Head, analysis.TableColumn{Key: fmt.Sprintf("at_%.0f", 100*s), Name: words.Percent(s), Unit: "s"})
	}
	for _, c := range f.Cells {
		if c.Valid == 0 {
			continue
		}
		for _, together := range []bool{false, true} {
			row := []analysis.Value{analysis.Text(c.System), analysis.Text(f.Layout.Where(c)), analysis.Text(map[bool]string{false: "a leecher", true: "all together"}[together])}
			for _, s := range shares {
				v := summary(c, reachedKey(together, s))
				for _, r := range f.Of(c, reachedKey(together, s)) {
					if r.Censored {
						v.Tone = analysis.Warn
					}
				}
				if v.Tone == analysis.Warn && !v.Number.Known() {
					v.Text = "never"
				}
				row = append(row, v)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// nodeTable is what nodes of each kind used: medians over trials of the median over the
// kind's nodes.
func (v *view) nodeTable(f *analysis.Frame) analysis.Table {
	t := analysis.Table{ID: "nodes", Title: "What nodes used", Folded: true,
		Caption: "Medians over trials of the median node; traffic of its link for each byte of content, headers included.",
		Head: []analysis.TableColumn{{Key: "system", Name: "system"}, {Key: "where", Name: "cell"}, {Key: "kind", Name: "kind"}, {Key: "nodes", Name: "nodes", Unit: "1"},
			{Key: "received", Name: "received", Unit: "×"}, {Key: "sent", Name: "sent", Unit: "×"}, {Key: "sent_most", Name: "sent, the busiest", Unit: "×"},
			{Key: "cpu", Name: "CPU", Unit: "s"}, {Key: "rss", Name: "memory", Unit: "B"}, {Key: "rss_most", Name: "memory, the largest", Unit: "B"}}}
	fields := []func(n node, size float64) float64{
		func(n node, size float64) float64 { return n.received / size }, func(n node, size float64) float64 { return n.sent / size },
		func(n node, _ float64) float64 { return n.cpu }, func(n node, _ float64) float64 { return n.rss }}
	for _, c := range f.Cells {
		_, swarms := v.of(f, c)
		for _, kind := range []string{"seeder", "leecher"} {
			middle, most := make([][]float64, len(fields)), make([][]float64, len(fields))
			nodes := 0
			for _, s := range swarms {
				for i, field := range fields {
					var xs []float64
					for _, n := range s.nodes {
						if x := field(n, s.size); n.seeder == (kind == "seeder") && !math.IsNaN(x) && !math.IsInf(x, 0) {
							xs = append(xs, x)
						}
					}
					if nodes = max(nodes, len(xs)); len(xs) > 0 {
						middle[i], most[i] = append(middle[i], stats.Median(xs)), append(most[i], slices.Max(xs))
					}
				}
			}
			if nodes == 0 {
				continue
			}
			of := func(xs []float64) analysis.Value { return analysis.Number(stats.Median(xs)) }
			t.Rows = append(t.Rows, []analysis.Value{analysis.Text(c.System), analysis.Text(f.Layout.Where(c)), analysis.Text(kind), analysis.Number(float64(nodes)),
				of(middle[0]), of(middle[1]), of(most[1]), of(middle[2]), of(middle[3]), of(most[3])})
		}
	}
	return t
}
