package analysis

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// Load reads the frame of a run directory with its plan. Trials are judged by the plan's limits,
// changed by --set arguments such as limits.others=none. recompute recomputes the metrics of
// finished trials from their records; nil: stored metrics are used. Memory depends on the number
// of trials and on what the view reads of each, not on the number of operations.
func Load(run *record.Reader, plan *experiment.Plan, view *View, recompute func(*record.Trial, experiment.Cell) error,
	sets ...string) (*Frame, error) {
	if err := plan.Experiment.Limits.Set(sets); err != nil {
		return nil, err
	}
	f := newFrame(plan, view)
	f.Meta, f.Metrics = run.Meta(), run.Metrics()
	if dir, err := filepath.Abs(run.Dir()); err == nil {
		f.Run.Dir = filepath.Base(dir)
	}
	trials, err := judged(run, plan, recompute)
	if err != nil {
		return nil, err
	}
	if f.Events, err = run.Events(); err != nil {
		return nil, err
	}
	if f.Checks, err = run.Links(); err != nil {
		return nil, err
	}
	f.addTrials(trials)
	lacking := f.lackingPercentiles()
	for _, t := range f.Trials {
		f.addRows(t, lacking)
		if err := f.read(t, run); err != nil {
			return nil, fmt.Errorf("trial %d: %w", t.ID, err)
		}
	}
	f.index()
	f.addLinks()
	f.setState(record.Written(run.Dir()))
	if len(sets) > 0 {
		f.Notes = append(f.Notes, "Validity was judged again with "+strings.Join(sets, ", ")+".")
	}
	return f, nil
}

// judged returns the trials of a run, recomputed if requested, with the reasons why they are invalid.
func judged(run *record.Reader, plan *experiment.Plan, recompute func(*record.Trial, experiment.Cell) error) (
	[]record.Trial, error) {
	trials, err := run.Trials()
	if err != nil {
		return nil, err
	}
	for i := range trials {
		t := &trials[i]
		at := slices.IndexFunc(plan.Cells, func(c experiment.Cell) bool { return c.ID == t.Cell })
		if recompute == nil || t.State != record.Done || at < 0 {
			continue
		}
		if err := recompute(t, plan.Cells[at]); err != nil {
			return nil, fmt.Errorf("trial %d: %w", t.ID, err)
		}
	}
	Judge(plan, trials)
	return trials, err
}

// read adds what the view reads of a trial.
func (f *Frame) read(t *Trial, run *record.Reader) error {
	if f.View.Read == nil || t.Warmup || t.State == record.Pending {
		return nil
	}
	more, err := f.View.Read(t, run)
	if err != nil {
		return err
	}
	for _, m := range more.Metrics {
		if _, has := f.Metric(m.Key); !has {
			f.Metrics = append(f.Metrics, m)
		}
	}
	f.Rows, f.Series, f.Spans = append(f.Rows, more.Rows...), append(f.Series, more.Series...),
		append(f.Spans, more.Spans...)
	return nil
}

// ReadPlan reads the plan of a run, which an older or newer version may have written.
func ReadPlan(run *record.Reader) (*experiment.Plan, error) {
	plan, err := experiment.ReadPlan(run.Plan())
	if err != nil {
		return nil, fmt.Errorf("plan of %s: %w", run.Dir(), err)
	}
	return plan, nil
}

func newFrame(p *experiment.Plan, view *View) *Frame {
	f := &Frame{Plan: p, View: view,
		Links: []Link{}, Invalid: []InvalidTrial{}, Skipped: []SkippedCell{}, Notes: []string{}}
	f.Run.PlanHash, f.Run.Seed, f.Run.Planned = p.Hash, p.Experiment.Seed, p.Blocks*len(p.Cells)
	several := len(p.Experiment.Systems) > 1 // otherwise there is nothing to compare with the baseline
	for _, c := range p.Cells {
		cell := &Cell{ID: c.ID, System: c.System, Baseline: c.Baseline && several, Group: c.Group(), Pair: c.Group(),
			Planned: p.Blocks, Plan: c,
			Outcomes: map[string]int64{}, Classes: map[string]int64{}, Metrics: map[string]Summary{},
			Reasons: map[string]int{}}
		for _, x := range c.Factors {
			cell.Factors = append(cell.Factors, Factor(x))
		}
		if cell.Baseline {
			f.Baseline = c.System
		}
		f.Cells = append(f.Cells, cell)
	}
	slot := 1
	for _, s := range p.Experiment.Systems {
		sys := System{Name: s.Name, Use: s.Use, Baseline: s.Name == f.Baseline, Slot: slot, With: s.With, Mode: s.Mode}
		if sys.Baseline {
			sys.Slot = 0
		} else {
			slot++
		}
		f.Systems = append(f.Systems, sys)
	}
	if view.Arrange != nil {
		view.Arrange(f)
	}
	f.Layout = f.layout()
	f.Notes = append(f.Notes, p.Unapplied()...)
	return f
}

// superseded is the state of a trial that was repeated by a resumed run.
const superseded = "superseded"

// cellBlock is a cell in a block of the plan. A repeated trial has the same one.
type cellBlock struct {
	cell  string
	block int
}

// latestTrials returns the ID of the latest trial of each cell in each block.
func latestTrials(trials []record.Trial) map[cellBlock]int64 {
	latest := map[cellBlock]int64{}
	for _, t := range trials {
		p := cellBlock{t.Cell, t.Block}
		latest[p] = max(latest[p], t.ID)
	}
	return latest
}

// addTrials adds trials and operations to their cells.
func (f *Frame) addTrials(trials []record.Trial) {
	byID := map[string]*Cell{}
	for _, c := range f.Cells {
		byID[c.ID] = c
	}
	latest := latestTrials(trials)
	for _, t := range trials {
		c := byID[t.Cell]
		if c == nil {
			continue // only in a damaged directory
		}
		invalid := InvalidTrial{Trial: t.ID, Cell: c.ID, System: c.System, Where: f.Layout.Where(c), Block: t.Block,
			State: string(t.State), Reasons: t.Invalid, Error: t.Error}
		if t.ID != latest[cellBlock{t.Cell, t.Block}] {
			if !t.Warmup && (t.State == record.Failed || t.State == record.Done) {
				invalid.State, invalid.Reasons = superseded, append([]string{"executed again"}, t.Invalid...)
				f.Invalid = append(f.Invalid, invalid)
			}
			if t.Outcomes[record.WrongBytes.String()] > 0 { // it stays for the rule wrong-bytes, in no statistic
				t.Invalid = append(slices.Clone(t.Invalid), superseded)
				f.Trials = append(f.Trials, &Trial{Trial: t, Info: c})
			}
			continue
		}
		f.Trials = append(f.Trials, &Trial{Trial: t, Info: c})
		if f.Run.Started.IsZero() || t.Epoch.Before(f.Run.Started) {
			f.Run.Started = t.Epoch
		}
		switch {
		case t.Warmup:
			f.Run.Warmup++
		case t.State == record.Pending || t.State == record.Running:
		case t.State == record.Skipped:
			f.skip(c, t)
		default:
			f.count(c, t, invalid)
		}
	}
}

// count adds an executed trial to its cell.
func (f *Frame) count(c *Cell, t record.Trial, invalid InvalidTrial) {
	f.Run.Done++
	switch {
	case t.Valid():
		f.Run.Valid++
		c.Valid++
		f.Run.Seconds += t.Seconds
		for o, n := range t.Outcomes {
			c.Outcomes[o] += n
			f.Run.Operations += n
		}
		for k, n := range t.Classes {
			c.Classes[k] += n
		}
		return
	case t.State == record.Failed:
		f.Run.Failed++
		c.Failed++
		invalid.Reasons = append([]string{"failed"}, t.Invalid...)
	default:
		f.Run.Invalid++
		c.Invalid++
	}
	for _, why := range invalid.Reasons {
		c.Reasons[why]++
	}
	f.Invalid = append(f.Invalid, invalid)
}

func (f *Frame) skip(c *Cell, t record.Trial) {
	f.Run.Skipped++
	c.Skipped++
	if i := slices.IndexFunc(f.Skipped, func(s SkippedCell) bool { return s.Cell == c.ID }); i >= 0 {
		f.Skipped[i].Trials++
		return
	}
	f.Skipped = append(f.Skipped, SkippedCell{Cell: c.ID, System: c.System, Where: f.Layout.Where(c), Trials: 1,
		Why: t.Error})
}

// lackingPercentiles returns the percentiles of cells with a valid trial that has too few operations for them.
// Its slow trials would be missing, so the percentile of the others is biased.
func (f *Frame) lackingPercentiles() map[rowKey]bool {
	lacking := map[rowKey]bool{}
	for _, t := range f.Trials {
		for _, m := range f.Metrics {
			if t.Valid() && !Supported(m.Key, t.Trial) {
				lacking[rowKey{t.Info, m.Key}] = true
			}
		}
	}
	return lacking
}

// addRows adds the recorded results of a trial, without percentiles that are lacking; numbers that the
// experiment cut off are censored.
func (f *Frame) addRows(t *Trial, lacking map[rowKey]bool) {
	if t.State != record.Done && t.State != record.Running {
		return
	}
	for _, m := range f.Metrics {
		v, has := t.Metrics[m.Key]
		switch {
		case lacking[rowKey{t.Info, m.Key}] || !Supported(m.Key, t.Trial):
		case !has && f.View.censors(t, m.Key):
			f.Rows = append(f.Rows, Row{Trial: t, Metric: m.Key, Value: beyond(m), Censored: true})
		case has && !math.IsNaN(v) && !math.IsInf(v, 0):
			f.Rows = append(f.Rows, Row{Trial: t, Metric: m.Key, Value: v})
		}
	}
}

// beyond returns the value of a censored row: times are longer than observed, and rates lower.
func beyond(m record.Metric) float64 {
	if m.Better == record.Higher {
		return math.Inf(-1)
	}
	return math.Inf(1)
}

// setState determines whether the run is complete, from the engine's events at the beginning and
// end of sessions. A session without an end whose process no longer writes was killed.
func (f *Frame) setState(written bool) {
	ended := true
	resumed := 0
	for _, e := range f.Events {
		if e.Trial != 0 || e.Kind != "phase" {
			continue
		}
		switch e.What {
		case "run begins":
			ended = false
		case "run resumed":
			ended = false
			resumed++
		case "run ends":
			ended = true
		}
	}
	if resumed > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("The run was interrupted and resumed (%d×).", resumed))
	}
	switch {
	case !ended && written:
		f.Run.State = "running"
	case f.Run.Done+f.Run.Skipped >= f.Run.Planned:
		f.Run.State = "complete"
	default:
		f.Run.State = "partial"
		f.Run.Stopped = f.Meta["stopped"]
	}
}
