package analysis

import (
	"cmp"
	_ "embed"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"gonum.org/v1/gonum/stat"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// texts are the texts used by every scenario, by key. They are embedded, so a parse error is a
// bug.
var texts = sync.OnceValue(func() (t struct {
	Rules                      []Rule
	Invalid                    []invalidity
	Verdict, Gate, Pairs, Runs map[string]string
}) {
	if err := yaml.UnmarshalWithOptions(wordsText, &t, yaml.Strict()); err != nil {
		panic(err)
	}
	return t
})

//go:embed words.yaml
var wordsText []byte

// CommonRules returns the rules of every scenario; views add their own.
func CommonRules() []Rule {
	v := View{Rules: slices.Clone(texts().Rules)}
	v.SetConditions(map[string]func(*Result) []Case{
		"wrong-bytes":       ofTrials(wrongBytes),
		"not-executed":      ofTrials(notExecuted),
		"link-not-emulated": noted(record.NoteNotEmulated),
		"beyond-line":       ofCells(beyondLine),
		"imported":          imported,
		"trials-invalid":    invalidTrials,
		"harness-busy":      ofCells(harnessBusy),
		"coarse":            ofCells(coarse),
		"drift":             drift,
		"overloaded":        ofCells(overloaded),
		"failures":          ofCells(failures),
		"deadlines":         ofCells(deadlines),
		"throughput-falls":  throughputFalls,
		"cpu-bound":         ofCells(cpuBound),
		"link-bound":        ofCells(linkBound),
		"skipped":           skipped,
		"not-compared":      noted("receive: drop"),
		"few-trials":        ofCells(fewTrials),
	})
	return v.Rules
}

// Cases returns a case for each cell for which f returns true.
func (r *Result) Cases(f func(c *Cell, x *Case) bool) []Case {
	var all []Case
	for _, c := range r.Cells {
		x := Case{System: c.System, Name: r.Frame.Layout.Name(c), Range: NoRange}
		if f(c, &x) {
			all = append(all, x)
		}
	}
	return all
}

// ofCells returns the condition of a rule about cells.
func ofCells(holds func(r *Result, c *Cell, x *Case) bool) func(*Result) []Case {
	return func(r *Result) []Case {
		return r.Cases(func(c *Cell, x *Case) bool { return holds(r, c, x) })
	}
}

// ofTrials returns the condition of a rule about trials.
func ofTrials(holds func(t *Trial, x *Case) bool) func(*Result) []Case {
	return func(r *Result) (all []Case) {
		for _, t := range r.Frame.Trials {
			if x := (Case{System: t.Info.System, Name: r.Frame.Layout.Name(t.Info)}); holds(t, &x) {
				all = append(all, x)
			}
		}
		return all
	}
}

func wrongBytes(t *Trial, x *Case) bool {
	x.N, x.Text = t.Outcomes[record.WrongBytes.String()], record.BlockName(t.Block)
	return x.N > 0
}

func notExecuted(t *Trial, x *Case) bool {
	x.N, x.Text = 1, t.Error
	return t.State == record.Failed
}

// noted finds trials with a note that begins with note.
func noted(note string) func(*Result) []Case {
	begins := func(n string) bool { return strings.HasPrefix(n, note) }
	return ofCells(func(r *Result, c *Cell, x *Case) bool {
		for _, t := range r.Frame.Trials {
			if t.Info == c && slices.ContainsFunc(t.Notes, begins) {
				x.N++
			}
		}
		return x.N > 0
	})
}

func beyondLine(r *Result, c *Cell, x *Case) bool {
	for _, t := range r.Frame.Trials {
		if t.Info != c || !t.ValidBut(record.ReasonBeyondLine) {
			continue
		}
		for _, s := range LineShares(c.Plan, t.Trial) {
			if Beyond(s.Share, float64(c.Plan.Link.Tolerance)) && !(x.Value > Num(s.Share)) {
				m, _ := r.Frame.Metric(s.Metric)
				x.Value, x.Text = Num(s.Share), m.Name
			}
		}
	}
	return x.Value.Known()
}

func imported(r *Result) []Case {
	if r.Imported == nil {
		return nil
	}
	return []Case{{}}
}

// invalidity is why trials are invalid, and what to do.
type invalidity struct {
	Reasons    []string // none: all reasons without an entry of their own
	Text, Hint string
}

func (v invalidity) of(t *Trial) bool {
	return v.Reasons == nil || slices.ContainsFunc(t.Invalid,
		func(s string) bool { return slices.Contains(v.Reasons, s) })
}

// invalidTrials returns a case for each cell and the first invalidity that explains its trials.
// Trials beyond the load line, and trials that were not executed, have their own rules.
func invalidTrials(r *Result) []Case {
	first := func(t *Trial) int {
		if t.Warmup || t.State == record.Failed || len(t.Invalid) == 0 ||
			slices.Contains(t.Invalid, record.ReasonBeyondLine) {
			return -1
		}
		return slices.IndexFunc(texts().Invalid, func(v invalidity) bool { return v.of(t) })
	}
	var all []Case
	for i, v := range texts().Invalid {
		all = append(all, r.Cases(func(c *Cell, x *Case) bool {
			x.Of, x.Text, x.Hint = int64(c.Valid+c.Invalid+c.Failed), v.Text, v.Hint
			var why []string
			for _, t := range r.Frame.Trials {
				if t.Info == c && first(t) == i {
					x.N++
					why = append(why, t.Invalid...)
				}
			}
			if v.Reasons == nil {
				slices.Sort(why)
				x.Text = strings.Join(slices.Compact(why), ", ")
			}
			return x.N > 0
		})...)
	}
	return all
}

// harnessBusy finds cells in which measuring used so much of all CPUs that it affects the results.
func harnessBusy(_ *Result, c *Cell, x *Case) bool {
	for _, m := range []struct {
		key, name string
		limit     float64
	}{{"harness_cpu", "plimsoll", 0.05}, {"emulator_cpu", "the link emulator", 0.50}} {
		if s, ok := c.Metrics[m.key]; ok && float64(s.Median) > m.limit &&
			(s.N == 1 || s.Lo > Num(m.limit) || float64(s.Median) > 1.5*m.limit) {
			x.Value, x.Text = s.Median, m.name
			return true
		}
	}
	return false
}

// coarsest is the largest acceptable interval between polls, as a share of a polled time.
const coarsest = 0.10

func coarse(r *Result, c *Cell, x *Case) bool {
	_, polled := r.View.Polled[r.Headline]
	gap, of := c.Metrics["resolution"], c.Metrics[r.Headline]
	if !polled || of.N == 0 || gap.N == 0 || !(gap.Median > coarsest*of.Median) {
		return false
	}
	x.Value, x.Limit = gap.Median, gap.Median/of.Median
	return true
}

const (
	driftFloor = 0.10 // smaller changes matter less than differences between systems
	// With driftAlpha, fewer than 1 % of runs without drift have a finding, even with few
	// cells and autocorrelated noise.
	driftAlpha = 0.006
)

// drift finds cells, including the baseline's, whose headline rises or falls from the first
// block to the last, and systems whose ratios to the baseline do so over all cells. It uses
// permutation tests over blocks, Holm-corrected, with half of driftAlpha for each of the two
// families.
func drift(r *Result) []Case {
	type test struct {
		Case
		p, size float64
	}
	var own, relative []test
	ask := func(blocks []float64, system, name string) test {
		change, p := stats.Change(blocks, r.Run.Seed)
		return test{Case{System: system, Name: name, Text: signedPercent(math.Expm1(change))}, p, math.Abs(change)}
	}
	for _, s := range r.Systems {
		var ratios [][]float64
		var centres []float64
		for _, c := range r.Cells {
			if c.System != s.Name || r.View.Accumulates != nil && r.View.Accumulates(c) {
				continue
			}
			row := c.Metrics[r.Headline].logs()
			own = append(own, ask(row, s.Name, r.Frame.Layout.Name(c)))
			if b := r.Frame.base(c); b != nil {
				base := b.Metrics[r.Headline].logs()
				ratio := slices.Clone(row[:min(len(row), len(base))])
				for i := range ratio {
					ratio[i] -= base[i]
				}
				known := slices.DeleteFunc(slices.Clone(ratio), math.IsNaN)
				if len(known) > 0 {
					ratios, centres = append(ratios, ratio), append(centres, stat.Mean(known, nil))
				}
			}
		}
		if len(ratios) > 0 { // a block affects all cells of a system alike, so blocks are permuted
			relative = append(relative,
				ask(stats.BlockMeans(ratios, centres), s.Name,
					s.Name+" relative to "+cmp.Or(r.Baseline, "the default")))
		}
	}
	var all []Case
	for _, family := range [][]test{own, relative} {
		ps := make([]float64, len(family))
		for i, t := range family {
			ps[i] = t.p
		}
		for i, p := range stats.Holm(ps) {
			if p <= driftAlpha/2 && family[i].size > math.Log1p(driftFloor) {
				all = append(all, family[i].Case)
			}
		}
	}
	return all
}

// keptUp is the share of the offered load that must be achieved to count as sustained.
const keptUp = 0.95

func overloaded(_ *Result, c *Cell, x *Case) bool {
	s, ok := c.Metrics["achieved_share"]
	x.Value = s.Median
	return ok && s.Median < keptUp
}

func failures(_ *Result, c *Cell, x *Case) bool {
	x.N, x.Of = c.Success.Of-c.Success.OK, c.Success.Of
	var why []string
	for _, o := range record.Outcomes() {
		if n := c.Outcomes[o.String()]; n > 0 && o.ServerFailure() {
			why = append(why, o.String())
		}
	}
	x.Text = strings.Join(why, ", ")
	var classes []string // the most frequent first; phases are of cut-off operations, too
	for class := range c.Classes {
		if !slices.Contains(record.Phases, class) {
			classes = append(classes, class)
		}
	}
	slices.SortFunc(classes, func(a, b string) int { return cmp.Or(int(c.Classes[b]-c.Classes[a]), cmp.Compare(a, b)) })
	for i, class := range classes {
		classes[i] = class + " ×" + words.Count(c.Classes[class])
	}
	if len(classes) > 0 {
		x.Text += ": " + words.Some(classes)
	}
	return x.N > 0
}

// fewLate is the share of operations cut off by the experiment above which it is reported.
const fewLate = 0.01

func deadlines(_ *Result, c *Cell, x *Case) bool {
	x.N = c.Outcomes[record.Deadline.String()] + c.Outcomes[record.Starved.String()]
	for _, n := range c.Outcomes {
		x.Of += n
	}
	return float64(x.N) >= fewLate*float64(x.Of) && x.N > 0
}

// fallAlpha is the significance level of a fall in throughput, over all curves.
const fallAlpha = 0.01

// nearLine is the share of the load line above which the link is the bottleneck.
const nearLine = 0.9

// curve is the throughput of a system at each level of concurrency.
type curve struct {
	x     Case
	loads []stats.Load
}

// curves returns the curves of a rate, without levels at which the link is the bottleneck: a
// fall there need not be caused by the system.
func (r *Result) curves(rate string) (all []*curve) {
	at := map[string]*curve{}
	for _, c := range r.Cells {
		level, _ := find(c.Factors, isConcurrency)
		key := strings.TrimSuffix(c.System+", "+c.levels(", ", func(x Factor) bool {
			return x.Path != "system" && !isConcurrency(x)
		}), ", ")
		if at[key] == nil {
			at[key] = &curve{x: Case{System: c.System, Name: key}}
			all = append(all, at[key])
		}
		if s, ok := c.Metrics["load_line_share"]; ok && s.Median >= nearLine && r.fillsLink(c) {
			continue
		}
		for _, row := range r.Frame.Of(c, rate) {
			if row.Value > 0 && !row.Censored {
				at[key].loads = append(at[key].loads, stats.Load{N: level.Number, X: row.Value})
			}
		}
	}
	return all
}

func isConcurrency(x Factor) bool { return strings.HasSuffix(x.Path, ".concurrency") }

// throughputFalls compares the throughput at the highest concurrency with that at each other
// level (Welch's test on logarithms, Holm-corrected).
func throughputFalls(r *Result) []Case {
	if r.View.Rate == "" {
		return nil
	}
	m, _ := r.Frame.Metric(r.View.Rate)
	curves := r.curves(m.Key)
	ps := make([]float64, len(curves))
	for i, k := range curves {
		levels, p := stats.Fall(k.loads)
		if ps[i] = p; math.IsNaN(p) {
			continue
		}
		best, top := levels[0], levels[len(levels)-1]
		for _, l := range levels {
			if l.P < fallAlpha && (l.X > best.X || best.P >= fallAlpha) {
				best = l
			}
		}
		k.x.Text = Fill("{{.Best}} at {{.BestN}}, {{.Top}} at {{.TopN}}", map[string]any{
			"Best": words.Show(best.X, m.Unit), "BestN": best.N, "Top": words.Show(top.X, m.Unit), "TopN": top.N})
	}
	var all []Case
	for i, p := range stats.Holm(ps) {
		if p < fallAlpha {
			all = append(all, curves[i].x)
		}
	}
	return all
}

// A single busy thread uses about one CPU.
const oneCPU, oneCPUMost = 0.95, 1.10

func cpuBound(_ *Result, c *Cell, x *Case) bool {
	s, ok := c.Metrics["busiest_cpu"]
	x.Value = s.Median
	return ok && s.N >= 3 && s.Lo >= oneCPU && s.Hi <= oneCPUMost
}

func linkBound(r *Result, c *Cell, x *Case) bool {
	for _, key := range []string{"load_line_share", "line_share"} {
		if s, ok := c.Metrics[key]; ok && s.N >= 3 && s.Lo >= nearLine {
			x.Value = s.Median
			if key == "load_line_share" && r.View.Rate != "" { // otherwise it is another line
				x.Text = "round trips"
				if r.fillsLink(c) {
					x.Text = "the rate of the link"
				}
			}
			return true
		}
	}
	return false
}

// fullRate is the share of the link's rate above which a load line is due to the rate; lower
// ones are due to round trips.
const fullRate = 0.90

// fillsLink reports whether the load line of most trials of a cell is due to the rate of the
// link, as measured before the trial.
func (r *Result) fillsLink(c *Cell) bool {
	full, all := 0, 0
	for _, t := range r.Frame.ValidTrials(c) {
		all++
		if slices.ContainsFunc(r.Frame.checksOf[t.ID], func(l record.LinkCheck) bool {
			return l.Rate > 0 && t.Metrics["load_line"] >= fullRate*l.Rate/8
		}) {
			full++
		}
	}
	return 2*full > all
}

func skipped(r *Result) []Case {
	var all []Case
	for _, s := range r.Skipped {
		all = append(all, Case{System: s.System, Name: strings.TrimSuffix(s.System+", "+s.Where, ", "), Text: s.Why})
	}
	return all
}

// fewestExact is the number of trials that an exact 95 % interval of a median needs.
const fewestExact = 6

func fewTrials(_ *Result, c *Cell, _ *Case) bool {
	return c.Valid > 0 && c.Valid < fewestExact && c.Planned > 1
}
