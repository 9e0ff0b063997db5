package analysis

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/plimsoll-project/plimsoll/internal/words"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/stats"
)

// CommonRules are those of every scenario; views add their own.
func CommonRules() []Rule {
	return []Rule{
		{ID: "wrong-bytes", Rank: Unreliable, Tone: Bad, Holds: wrongBytes,
			Title:  `Wrong bytes: {{.Systems}}`,
			Each:   `{{.Text}}, {{.Name}}: {{plural .N "operation" "operations"}}`,
			Advice: `Look at these operations in run.db (outcome wrong-bytes) and at the logs of the trial.`},
		{ID: "not-executed", Rank: Unreliable, Tone: Bad, Holds: notExecuted,
			Title:  `{{plural (int .Count) "trial" "trials"}} could not be executed`,
			Each:   `{{.Name}}: {{.Text}}`,
			Advice: `Read logs/ in the run directory, then continue with plimsoll resume.`},
		{ID: "link-not-emulated", Rank: Unreliable, Tone: Bad, Holds: noted(record.NoteNotEmulated),
			Title:  `Links were not emulated: these numbers are of the bare machine`,
			Each:   `{{.Name}}: {{plural .N "trial" "trials"}}`,
			Advice: `plimsoll doctor says what this machine lacks; or leave the link out of the experiment.`},
		{ID: "beyond-line", Rank: Unreliable, Tone: Bad, Holds: beyondLine,
			Title:  `Faster than the link allows: {{.Systems}}`,
			Each:   `{{.Name}}: {{.Text}} at {{percent .Value}} of the load line`,
			Advice: `These cells are left out. Look for caching, compression, or a path around the emulated link.`},
		{ID: "imported", Rank: Unreliable, Tone: Warn, Holds: imported,
			Title:  `Another program measured these numbers`,
			Advice: `Links, load and content were not verified. Repeat the decisive cells with Plimsoll.`},
		{ID: "trials-invalid", Rank: Unreliable, Tone: Warn, Holds: invalidTrials,
			Title:  `Invalid: {{plural .Total "trial" "trials"}} ({{.Texts}})`,
			Each:   `{{.Name}}: {{.N}} of {{plural .Of "trial" "trials"}}, {{.Text}}`,
			Advice: `{{.Hints}} plimsoll resume --retry-invalid runs these trials again.`},
		{ID: "harness-busy", Rank: Unreliable, Tone: Warn, Holds: harnessBusy,
			Title:  `Plimsoll itself used much of the machine`,
			Each:   `{{.Name}}: {{.Text}} used {{percent .Value}} of all CPUs`,
			Advice: `Poll less often, or use fewer nodes or slower links.`},
		{ID: "coarse", Rank: Unreliable, Tone: Warn, Holds: coarse,
			Title:  `Polls are too rare for these times`,
			Each:   `{{.Name}}: polls are {{show .Value "s"}} apart, {{percent .Limit}} of the time`,
			Advice: `Use larger contents, longer chains or slower links, or poll more often.`},
		{ID: "drift", Rank: Unreliable, Tone: Warn, Holds: drift,
			Title:  `Results drifted during the run: {{.Systems}}`,
			Each:   `{{.Name}}: {{.Text}} from the first block to the last`,
			Advice: `Look at the figures over time, repeat with more blocks, or add warm-up.`},
		{ID: "overloaded", Rank: Failure, Tone: Bad, Holds: overloaded,
			Title:  `The offered load was not sustained: {{.Systems}}`,
			Each:   `{{.Name}}: {{percent .Value}} of the offered load`,
			Advice: `Waiting grows with the length of the trial. Offer less to find the highest sustained load.`},
		{ID: "failures", Rank: Failure, Tone: Bad, Holds: failures,
			Title:  `Operations failed: {{.Systems}}`,
			Each:   `{{.Name}}: {{.N}} of {{.Of}} ({{.Text}})`,
			Advice: `Read the system's log of such a trial, and see at which load it begins.`},
		{ID: "deadlines", Rank: Failure, Tone: Warn, Holds: deadlines,
			Title:  `Operations passed the deadline or were starved by a full link: {{.Systems}}`,
			Each:   `{{.Name}}: {{.N}} of {{.Of}}`,
			Advice: `The server did not fail. Raise limits.deadline and limits.stall, or ask for less at once.`},
		{ID: "throughput-falls", Rank: Slow, Tone: Warn, Holds: throughputFalls,
			Title:  `Throughput falls under load: {{.Systems}}`,
			Each:   `{{.Name}}: {{.Text}}`,
			Advice: `Limit concurrency to the best level, and look for what all operations share.`},
		{ID: "cpu-bound", Rank: Slow, Tone: Neutral, Holds: cpuBound,
			Title:  `One process kept a CPU busy: {{.Systems}}`,
			Each:   `{{.Name}}: {{show .Value "1"}} CPUs`,
			Advice: `A single thread may be the bottleneck. Profile that process.`},
		{ID: "link-bound", Rank: Slow, Tone: Good, Holds: linkBound,
			Title: `Near the load line: {{.Systems}}`,
			Each:  `{{.Name}}: {{percent .Value}} of the line{{with .Text}}, limited by {{.}}{{end}}`},
		{ID: "skipped", Rank: Notable, Tone: Neutral, Holds: skipped,
			Title: `Left out because they would take too long: {{plural (int .Count) "cell" "cells"}}`,
			Each:  `{{.Name}}: {{.Text}}`},
		{ID: "not-compared", Rank: Notable, Tone: Neutral, Holds: noted("receive: drop"),
			Title:  `Contents were not verified (receive: drop)`,
			Each:   `{{.Name}}: {{plural .N "trial" "trials"}}`,
			Advice: `Run a few repetitions with receive: verify.`},
		{ID: "few-trials", Rank: Notable, Tone: Neutral, Holds: fewTrials,
			Title: `Too few trials for 95 % intervals: {{plural (int .Count) "cell" "cells"}}`,
			Advice: `Each cell needs 6 valid trials; with fewer, intervals are the range of the trials. ` +
				`Repeat more often, or see why trials are invalid.`},
	}
}

// Cases makes one case for each cell of which f says so.
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

// trials makes one case for each trial of which f says so.
func (r *Result) trials(f func(t *Trial, x *Case) bool) []Case {
	var all []Case
	for _, t := range r.Frame.Trials {
		if x := (Case{System: t.Info.System, Name: r.Frame.Layout.Name(t.Info)}); f(t, &x) {
			all = append(all, x)
		}
	}
	return all
}

func wrongBytes(r *Result) []Case {
	return r.trials(func(t *Trial, x *Case) bool {
		x.N, x.Text = t.Outcomes[record.WrongBytes.String()], record.BlockName(t.Block)
		return x.N > 0
	})
}

func notExecuted(r *Result) []Case {
	return r.trials(func(t *Trial, x *Case) bool {
		x.N, x.Text = 1, t.Error
		return t.State == record.Failed
	})
}

// noted finds trials with a note that begins so.
func noted(note string) func(*Result) []Case {
	return func(r *Result) []Case {
		return r.Cases(func(c *Cell, x *Case) bool {
			for _, t := range r.Frame.Trials {
				if t.Info == c && slices.ContainsFunc(t.Notes,
					func(n string) bool { return strings.HasPrefix(n, note) }) {
					x.N++
				}
			}
			return x.N > 0
		})
	}
}

func beyondLine(r *Result) []Case {
	return r.Cases(func(c *Cell, x *Case) bool {
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
	})
}

func imported(r *Result) []Case {
	if r.Imported == nil {
		return nil
	}
	return []Case{{}}
}

// invalidity is why trials are invalid, and what to do.
type invalidity struct {
	reasons    []string // none: all that no other has
	text, hint string
}

var invalidities = []invalidity{
	{[]string{record.ReasonLinkOff}, "links outside their tolerance",
		"See the table of links: a slower link or a quieter machine is easier to emulate."},
	{[]string{record.ReasonEmulatorLate, record.ReasonEmulatorDied}, "the link emulator was late, or ended",
		"Use a slower link, fewer nodes or a quieter machine: the emulator needs CPU time to send each packet when " +
			"it is due."},
	{[]string{record.ReasonBoxBusy}, "other processes used the CPU",
		"Execute them again on a quiet machine: plimsoll resume --retry-invalid DIR."},
	{[]string{record.ReasonMachineLimited}, "this machine was the bottleneck",
		"Use fewer nodes or connections, a slower link, or a machine with more CPUs."},
	{[]string{record.ReasonThrottled}, "a CPU limit held back a machine",
		"Raise or remove the CPU limit of the container or service."},
	{[]string{record.ReasonGeneratorSaturated, record.ReasonGeneratorLate}, "the load generator was the bottleneck",
		"Shape the link, receive with drop, divide the generator (--clients), or run it on a machine of its own."},
	{nil, "other reasons", "Read the log of such a trial; plimsoll resume --retry-invalid DIR executes it again."},
}

func (v invalidity) of(t *Trial) bool {
	return v.reasons == nil || slices.ContainsFunc(t.Invalid,
		func(s string) bool { return slices.Contains(v.reasons, s) })
}

// invalidTrials makes a case of each cell and the first that explains its trials. What
// is beyond the load line has a rule of its own, and so has what was not executed.
func invalidTrials(r *Result) []Case {
	first := func(t *Trial) int {
		if t.Warmup || t.State == record.Failed || len(t.Invalid) == 0 ||
			slices.Contains(t.Invalid, record.ReasonBeyondLine) {
			return -1
		}
		return slices.IndexFunc(invalidities, func(v invalidity) bool { return v.of(t) })
	}
	var all []Case
	for i, v := range invalidities {
		all = append(all, r.Cases(func(c *Cell, x *Case) bool {
			x.Of, x.Text, x.Hint = int64(c.Valid+c.Invalid+c.Failed), v.text, v.hint
			var why []string
			for _, t := range r.Frame.Trials {
				if t.Info == c && first(t) == i {
					x.N++
					why = append(why, t.Invalid...)
				}
			}
			if v.reasons == nil {
				slices.Sort(why)
				x.Text = strings.Join(slices.Compact(why), ", ")
			}
			return x.N > 0
		})...)
	}
	return all
}

// Shares of all CPUs from which on what measures disturbs what is measured.
const (
	busyHarness  = 0.05
	busyEmulator = 0.50
)

func harnessBusy(r *Result) []Case {
	return r.Cases(func(c *Cell, x *Case) bool {
		for _, m := range []struct {
			key, name string
			limit     float64
		}{{"harness_cpu", "plimsoll", busyHarness}, {"emulator_cpu", "the link emulator", busyEmulator}} {
			if s, ok := c.Metrics[m.key]; ok && float64(s.Median) > m.limit &&
				(s.N == 1 || s.Lo > Num(m.limit) || float64(s.Median) > 1.5*m.limit) {
				x.Value, x.Text = s.Median, m.name
				return true
			}
		}
		return false
	})
}

// coarsest is the share of a polled time that the polls may lie apart.
const coarsest = 0.10

func coarse(r *Result) []Case {
	if _, polled := r.View.Polled[r.Headline]; !polled {
		return nil
	}
	return r.Cases(func(c *Cell, x *Case) bool {
		gap, of := c.Metrics["resolution"], c.Metrics[r.Headline]
		if of.N == 0 || gap.N == 0 || !(gap.Median > coarsest*of.Median) {
			return false
		}
		x.Value, x.Limit = gap.Median, gap.Median/of.Median
		return true
	})
}

const (
	driftFloor = 0.10 // smaller changes matter less than what differs between systems
	// driftAlpha is such that of runs without drift fewer than 1 % have a finding, of few
	// cells and autocorrelated noise, too.
	driftAlpha = 0.006
)

// drift looks for cells whose headline rises or falls from the first block to the last,
// the baseline's too, and for such a change in the ratios to the baseline, over all
// cells of a system: by permutation tests over blocks, Holm-corrected, and with half of
// driftAlpha for each of the two families.
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
		if len(ratios) > 0 { // a block hits all cells of a system alike, so blocks are what is permuted
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

// keptUp is the share of the offered load below which it was not sustained.
const keptUp = 0.95

func overloaded(r *Result) []Case {
	return r.Cases(func(c *Cell, x *Case) bool {
		s, ok := c.Metrics["achieved_share"]
		x.Value = s.Median
		return ok && s.Median < keptUp
	})
}

func failures(r *Result) []Case {
	return r.Cases(func(c *Cell, x *Case) bool {
		x.N, x.Of = c.Success.Of-c.Success.OK, c.Success.Of
		var why []string
		for _, o := range record.Outcomes() {
			if n := c.Outcomes[o.String()]; n > 0 && o.ServerFailure() {
				why = append(why, o.String())
			}
		}
		x.Text = strings.Join(why, ", ")
		return x.N > 0
	})
}

// fewLate is the share of operations cut off by the experiment that is worth a word.
const fewLate = 0.01

func deadlines(r *Result) []Case {
	return r.Cases(func(c *Cell, x *Case) bool {
		x.N = c.Outcomes[record.Deadline.String()] + c.Outcomes[record.Starved.String()]
		for _, n := range c.Outcomes {
			x.Of += n
		}
		return float64(x.N) >= fewLate*float64(x.Of) && x.N > 0
	})
}

// fallAlpha is the significance level of a fall, over all curves.
const fallAlpha = 0.01

// nearLine is the share of the load line from which on the link is the bottleneck.
const nearLine = 0.9

// curve is the throughput of a system at each level of concurrency.
type curve struct {
	x     Case
	loads []stats.Load
}

// curves are those of a rate. Levels at which the link is the bottleneck are left out:
// what falls there need not be the system's doing.
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

// throughputFalls compares the throughput at the highest concurrency with that at each
// other (Welch's test on logarithms, Holm-corrected).
func throughputFalls(r *Result) []Case {
	if r.View.Rate == "" {
		return nil
	}
	m, _ := r.Frame.Metric(r.View.Rate)
	curves := r.curves(m.Key)
	ps := make([]float64, len(curves))
	for i, k := range curves {
		levels, p, err := stats.Fall(k.loads)
		ps[i] = p
		if err != nil {
			ps[i] = math.NaN()
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

func cpuBound(r *Result) []Case {
	return r.Cases(func(c *Cell, x *Case) bool {
		s, ok := c.Metrics["busiest_cpu"]
		x.Value = s.Median
		return ok && s.N >= 3 && s.Lo >= oneCPU && s.Hi <= oneCPUMost
	})
}

func linkBound(r *Result) []Case {
	return r.Cases(func(c *Cell, x *Case) bool {
		for _, key := range []string{"load_line_share", "line_share"} {
			if s, ok := c.Metrics[key]; ok && s.N >= 3 && s.Lo >= nearLine {
				x.Value = s.Median
				if key == "load_line_share" && r.View.Rate != "" { // else the line is another one
					x.Text = "round trips"
					if r.fillsLink(c) {
						x.Text = "the rate of the link"
					}
				}
				return true
			}
		}
		return false
	})
}

// fullRate is the share of the link's rate from which on a load line is that of the
// rate; a lower one is that of round trips.
const fullRate = 0.90

// fillsLink reports whether the load line of most trials of a cell is the rate of the
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

// fewestExact is how many trials an exact 95 % interval of a median needs.
const fewestExact = 6

func fewTrials(r *Result) []Case {
	return r.Cases(func(c *Cell, x *Case) bool { return c.Valid > 0 && c.Valid < fewestExact && c.Planned > 1 })
}
