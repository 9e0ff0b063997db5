package report

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/stats"
	"github.com/plimsoll-project/plimsoll/validity"
)

// Build computes the report of a run directory. It reads trials, link checks
// and streams windows, samples, jobs and polls; never the operations, but for those of the
// scenario disseminate, of which a trial has two per node, and the first of a load test
// in which puts were tried again: its memory grows with the number of trials, polls and
// nodes, and with that of jobs up to a bound, not with operations or with time. The
// same directory gives the same report.
//
// Its trials are judged by the limits of its plan, changed by --set arguments such as
// limits.others=none.
func Build(run *record.Reader, sets ...string) (*Report, error) {
	return build(run, false, false, sets...)
}

// Rebuild is Build, but for the metrics of trials that recorded what they follow from:
// those are computed again by this version's definitions. It reads operations and jobs
// where a metric needs them, some 2 s for each million.
func Rebuild(run *record.Reader, sets ...string) (*Report, error) {
	return build(run, false, true, sets...)
}

// build computes it; at a glance it leaves out what only the end of a run tells, and
// what takes reading every sample; again as [Rebuild] does.
func build(run *record.Reader, glance, again bool, sets ...string) (*Report, error) {
	in, err := gather(run, again, sets...)
	if err != nil {
		return nil, err
	}
	in.glance = glance
	r := compute(in)
	if in.err != nil {
		return nil, in.err
	}
	if err := r.lens.draw(r, in); err != nil {
		return r, err
	}
	return r, in.err
}

// gather reads what a report is computed from, and judges which trials count. again
// computes their metrics once more.
func gather(run *record.Reader, again bool, sets ...string) (*input, error) {
	meta := run.Meta()
	plan, err := LoadPlan(run.Plan(), meta[PlanSum])
	if err != nil {
		return nil, fmt.Errorf("report: plan of %s: %w", run.Dir(), err)
	}
	if err := plan.Experiment.Limits.Set(sets); err != nil {
		return nil, err
	}
	in := &input{meta: meta, plan: viewOf(plan), raw: run.Plan(), metrics: run.Metrics(), sets: sets}
	if in.trials, err = run.Trials(); err != nil {
		return nil, err
	}
	if again {
		if err := recompute(run, plan, in.trials); err != nil {
			return nil, err
		}
	}
	validity.Judge(plan, in.trials)
	if in.events, err = run.Events(); err != nil {
		return nil, err
	}
	if in.links, err = run.Links(); err != nil {
		return nil, err
	}
	in.written = record.Written(run.Dir())
	in.windows, in.polls, in.jobs, in.ops, in.marks, in.samples = run.Windows, run.Polls, run.Jobs, run.Ops, run.Marks, run.Samples
	in.latest = run.Latest
	if in.searches, err = run.Search(); err != nil {
		return nil, err
	}
	if in.name, err = filepath.Abs(run.Dir()); err != nil {
		in.name = run.Dir()
	}
	in.name = filepath.Base(in.name)
	return in, nil
}

// recompute computes the metrics of trials that are over from what they recorded, by
// this version's definitions; of those that did not record enough the stored ones stay.
func recompute(run *record.Reader, plan *experiment.Plan, trials []record.Trial) error {
	s := scenario.ByName(plan.Experiment.Scenario)
	if s == nil {
		return nil
	}
	cells := make(map[string]experiment.Cell, len(plan.Cells))
	for _, c := range plan.Cells {
		cells[c.ID] = c
	}
	for i := range trials {
		t := &trials[i]
		cell, planned := cells[t.Cell]
		if t.State != record.Done || !planned {
			continue
		}
		m, err := scenario.Recompute(s, run, *t, cell, nil)
		if errors.Is(err, scenario.ErrNoFacts) {
			continue
		}
		if err != nil {
			return fmt.Errorf("report: %s: %w", run.Dir(), err)
		}
		t.Metrics = m
	}
	return nil
}

// PlanSum is the key under which the recorder keeps the SHA-256 of plan.json.
const PlanSum = "record.plan_sha256"

// LoadPlan reads a plan that an older or newer Plimsoll may have written. That
// it is the run's is shown by the sum of its bytes, not by the hash of the form
// that this version would give it.
func LoadPlan(raw []byte, sum string) (*experiment.Plan, error) {
	if got := fmt.Sprintf("%x", sha256.Sum256(raw)); sum != "" && got != sum {
		return nil, fmt.Errorf("plan.json is not the one that the run began with (its SHA-256 is %.12s, recorded is %.12s)", got, sum)
	}
	var plan experiment.Plan
	if err := json.Unmarshal(raw, &plan); err != nil {
		return nil, err
	}
	if plan.Format > experiment.PlanFormat {
		return nil, fmt.Errorf("format %d, this program reads up to %d; use the version of plimsoll that wrote it, or a newer one", plan.Format, experiment.PlanFormat)
	}
	return &plan, nil
}

// viewOf takes from a plan what a report needs.
func viewOf(p *experiment.Plan) planView {
	e := p.Experiment
	v := planView{Hash: p.Hash, Scenario: e.Scenario, Title: e.Title, Question: e.Question, Description: e.Description,
		Seed: e.Seed, Blocks: p.Blocks, Gates: e.Gates, Deadline: e.Limits.Deadline.Seconds()}
	if e.Repetitions.Until != nil {
		v.Until = e.Repetitions.Min
	}
	for _, c := range p.Cells {
		cell := Cell{ID: c.ID, System: c.System, Baseline: c.Baseline, Group: c.Group(), plan: c}
		for _, f := range c.Factors {
			cell.Factors = append(cell.Factors, Factor(f))
		}
		if c.Retrieve != nil && c.Retrieve.Arrivals != nil {
			v.OpenLoop = true
		}
		v.Cells = append(v.Cells, cell)
		if c.Baseline {
			v.Baseline = c.System
		}
	}
	for _, c := range p.Skipped {
		var words []string
		for _, f := range c.Factors {
			if f.Path != "system" {
				words = append(words, f.Label+" "+Factor(f).Text())
			}
		}
		v.Skipped = append(v.Skipped, SkippedCell{Cell: c.ID, System: c.System, Where: strings.Join(words, ", "), Why: c.Why})
	}
	slot := 1
	for _, s := range e.Systems {
		sys := System{Name: s.Name, Use: s.Use, Baseline: s.Name == v.Baseline, Slot: slot, with: s.With, mode: s.Mode}
		if sys.Baseline {
			sys.Slot = 0
		} else {
			slot++
		}
		v.Systems = append(v.Systems, sys)
	}
	v.Unapplied = p.Unapplied()
	v.Link, v.Imported = linkWords(e.Link, p.Cells), p.Imported
	if v.Imported != nil {
		v.Link = "not known"
	}
	return v
}

// linkWords describes the link in a few words.
func linkWords(l experiment.Link, cells []experiment.Cell) string {
	if !slices.ContainsFunc(cells, func(c experiment.Cell) bool { return c.Link.Shaped() }) {
		return "not shaped"
	}
	var words []string
	rates := each(l.Rate, func(v experiment.BitRate) string {
		if v == 0 {
			return "unlimited"
		}
		return exact(float64(v), "bit/s")
	})
	delays := each(l.Delay, func(v experiment.Duration) string { return exact(v.Seconds(), "s") })
	losses := each(l.Loss, func(v experiment.Fraction) string { return percent(float64(v)) })
	if rates != "unlimited" && rates != "" {
		words = append(words, rates)
	}
	if delays != "0 s" && delays != "" {
		words = append(words, delays+" one way")
	}
	if losses != "0 %" && losses != "" {
		words = append(words, losses+" loss")
	}
	return strings.Join(words, ", ")
}

// each lists the values of an axis, or counts them when they are many.
func each[T any](values experiment.Axis[T], say func(T) string) string {
	if len(values) > 3 {
		return fmt.Sprintf("%d values", len(values))
	}
	var words []string
	for _, v := range values {
		words = append(words, say(v))
	}
	return list(words)
}

// compute is everything but the pictures.
func compute(in *input) *Report {
	r := summarised(in)
	r.conclude(in)
	return r
}

// conclude is what follows from the cells.
func (r *Report) conclude(in *input) {
	r.compare()
	r.checkLinks(in)
	r.Gates = r.ownGates()
	if r.lens.work != nil {
		r.lens.work(r, in)
	}
	r.state(in)
	r.live(in)
	r.find()
	r.remark(in)
	r.LoadLine = r.explainLoadLine()
	r.judge()
}

// summarised is a report with what its trials say of each cell, and nothing that
// is concluded from it.
func summarised(in *input) *Report {
	p := in.plan
	r := &Report{Format: Format, Scenario: p.Scenario, Title: p.Title, Question: p.Question, Description: p.Description,
		Baseline: p.Baseline, Systems: p.Systems, Metrics: in.metrics, Plan: in.raw, link: p.Link, imported: p.Imported, dir: in.name, held: p.Gates, lens: lensOf(p.Scenario),
		Findings: []Finding{}, Notes: []string{}, Overall: []Overall{}, Cells: []Cell{}, Invalid: []InvalidTrial{}, Skipped: append([]SkippedCell{}, p.Skipped...), Links: []Link{}, Environment: []Pair{}}
	r.headline = r.lens.headline(p)
	if s := scenario.ByName(p.Scenario); s != nil && r.Question == "" {
		r.Question = s.Question()
	}
	r.Run.PlanHash, r.Run.Seed = p.Hash, p.Seed
	r.Environment = environment(in.meta)
	if r.lens.read != nil {
		r.lens.read(r, in)
	}
	r.tally(in)
	r.summarise()
	r.checks = map[int64]record.LinkCheck{}
	for _, l := range in.links {
		r.checks[l.Trial] = l
	}
	if r.lens.before != nil {
		r.lens.before(r, in)
	}
	return r
}

// state says whether the run is complete, from the events that the engine
// leaves when a session begins and ends. A session that has no end and whose
// process no longer writes was killed.
func (r *Report) state(in *input) {
	ended := true
	for _, e := range in.events {
		if e.Trial != 0 || e.Kind != "phase" {
			continue
		}
		if e.What == "run resumed" {
			r.resumed = append(r.resumed, e.At)
		}
		switch e.What {
		case "run begins", "run resumed":
			ended = false
		case "run ends":
			ended = true
		}
	}
	enough := r.Run.Done+r.Run.Skipped >= r.Run.Planned
	if !enough && in.plan.Until > 0 {
		// Repetitions that end once an interval is narrow enough.
		enough = !slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Valid+c.Invalid+c.Failed+c.Skipped < in.plan.Until })
	}
	switch {
	case !ended && in.written:
		r.Run.State = "running"
	case enough:
		r.Run.State = "complete"
	default:
		r.Run.State = "partial"
	}
	if why := in.meta["stopped"]; why != "" && r.Run.State == "partial" {
		r.Run.Stopped = why
	}
}

var digitsIn = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// remark collects notes: what a reader should know that is not a finding.
func (r *Report) remark(in *input) {
	// Notes that differ in their numbers only are one note; the first stands for all.
	seen, first, varied := map[string]int{}, map[string]string{}, map[string]bool{}
	for _, t := range r.Trials {
		if t.Warmup {
			continue
		}
		for _, n := range t.Notes {
			key := digitsIn.ReplaceAllString(n, "#")
			if have := first[key]; have == "" {
				first[key] = n
			} else if have != n {
				varied[key] = true
			}
			seen[key]++
		}
	}
	for _, text := range in.plan.Unapplied {
		r.Notes = append(r.Notes, capital(text)+".")
	}
	if n := len(r.resumed); n > 0 && r.Loads == nil { // a load test tells its sessions one by one
		r.Notes = append(r.Notes, fmt.Sprintf("The run was interrupted and resumed %s, the last time at %s: what changed on the machine in between lies between its trials.", plural(int64(n), "time", "times"), r.resumed[n-1].UTC().Format("2006-01-02 15:04 UTC")))
	}
	if len(in.sets) > 0 {
		r.Notes = append(r.Notes, "Which trials are valid was judged again, with "+list(in.sets)+".")
	}
	single := false
	least, most := 0, 0 // of the cells with more than one
	for _, c := range r.Cells {
		single = single || c.Valid == 1
		if n := c.Valid; n > 1 {
			if least == 0 || n < least {
				least = n
			}
			most = max(most, n)
		}
	}
	if single && r.Loads == nil { // a load test is one trial by design
		r.Notes = append(r.Notes, "Some cells have a single valid trial: there is no interval and no comparison for them. Repeat at least 6 times for an interval at 95 %.")
	}
	if least > 0 && least < 6 {
		r.Notes = append(r.Notes, fmt.Sprintf("With %d valid trials a median's interval is the whole range of the trials and has %s confidence (no ± below %d trials); from 6 trials on it has 95 %%.", least, percent(1-math.Pow(2, float64(1-least))), fewestForPlusMinus))
	}
	if m := r.family(); m > 0 && r.syncs == nil && least > 1 && stats.LeastPairedP(least)*float64(m) > alpha {
		n := least
		for stats.LeastPairedP(n)*float64(m) > alpha {
			n++
		}
		decides := "Student's interval of the ratios, which takes noise for normal, decides in its place"
		if least < fewestPairs {
			decides = fmt.Sprintf("nothing is claimed of cells with fewer than %d", fewestPairs)
		}
		r.Notes = append(r.Notes, fmt.Sprintf("With %d blocks a signed-rank test cannot show a difference among %s: %s. %d blocks would do.", least, plural(int64(m), "comparison", "comparisons"), decides, n))
	}
	keys := slices.SortedFunc(maps.Keys(seen), func(a, b string) int {
		if seen[a] != seen[b] {
			return seen[b] - seen[a]
		}
		return strings.Compare(a, b)
	})
	for i, n := range keys {
		if i == 12 {
			r.Notes = append(r.Notes, plural(int64(len(keys)-i), "more kind of note", "more kinds of notes")+" in run.db.")
			break
		}
		like := ""
		if varied[n] {
			like = "or like it, "
		}
		r.Notes = append(r.Notes, fmt.Sprintf("%s (%s%s)", first[n], like, plural(int64(seen[n]), "trial", "trials")))
	}
}

// family is the number of comparisons of the headline.
func (r *Report) family() int {
	n := 0
	for _, c := range r.Cells {
		if _, ok := c.Ratios[r.headline]; ok {
			n++
		}
	}
	return n
}
