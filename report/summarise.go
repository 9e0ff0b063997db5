package report

import (
	"math"

	"github.com/plimsoll-project/plimsoll/record"
)

// tally counts trials and operations into their cells. Only valid trials reach
// the statistics; the others are counted, and named where they belong.
func (r *Report) tally(in *input) {
	byID := map[string]*Cell{}
	for i := range in.plan.Cells {
		c := in.plan.Cells[i]
		c.Planned = in.plan.Blocks
		c.Outcomes, c.Classes = map[string]int64{}, map[string]int64{}
		c.Metrics, c.Reasons, c.never = map[string]Summary{}, map[string]int{}, map[string]Summary{}
		r.Cells = append(r.Cells, c)
	}
	for i := range r.Cells {
		byID[r.Cells[i].ID] = &r.Cells[i]
	}
	r.shape = shapeOf(r.cells(), r.lens.axis, r.lens.facets)
	latest := latestOf(in.trials)
	for _, t := range in.trials {
		c := byID[t.Cell]
		if c == nil {
			continue // a plan is fixed by its hash, so only a damaged directory gets here
		}
		if t.ID != latest[place{t.Cell, t.Block}] && t.Outcomes[record.WrongBytes.String()] == 0 {
			// A resumed run has executed it again; corruption stays.
			if !t.Warmup && (t.State == record.Failed || t.State == record.Done) {
				r.Invalid = append(r.Invalid, InvalidTrial{Trial: t.ID, Cell: c.ID, System: c.System, Where: r.shape.where(c),
					Block: t.Block, State: superseded, Reasons: append([]string{"executed again"}, t.Invalid...), Error: t.Error})
			}
			continue
		}
		r.Trials = append(r.Trials, Trial{Trial: t, Info: c})
		r.Run.Seconds += t.Seconds
		if r.Run.Started.IsZero() || t.Epoch.Before(r.Run.Started) {
			r.Run.Started = t.Epoch
		}
		switch {
		case t.Warmup:
			r.Run.Warmup++
			continue
		case t.State == record.Pending || t.State == record.Running:
			continue
		case t.State == record.Skipped:
			r.skip(c, t)
			continue
		}
		r.Run.Done++
		if t.Valid() {
			r.Run.Valid++
			c.Valid++
			for o, n := range t.Outcomes {
				c.Outcomes[o] += n
				r.Run.Operations += n
			}
			for k, n := range t.Classes {
				c.Classes[k] += n
			}
			continue
		}
		reasons := t.Invalid
		if t.State == record.Failed {
			r.Run.Failed++
			c.Failed++
			reasons = append([]string{"failed"}, reasons...)
		} else {
			r.Run.Invalid++
			c.Invalid++
		}
		for _, why := range reasons {
			c.Reasons[why]++
		}
		r.Invalid = append(r.Invalid, InvalidTrial{Trial: t.ID, Cell: c.ID, System: c.System, Where: r.shape.where(c),
			Block: t.Block, State: string(t.State), Reasons: reasons, Error: t.Error})
	}
	r.Run.Planned = in.plan.Blocks * len(r.Cells)
}

// superseded is the state of a trial in whose place a later one counts.
const superseded = "superseded"

// skip notes a trial that was left out on purpose.
func (r *Report) skip(c *Cell, t record.Trial) {
	r.Run.Skipped++
	c.Skipped++
	for i := range r.Skipped {
		if s := &r.Skipped[i]; s.Cell == c.ID {
			s.Trials++
			return
		}
	}
	r.Skipped = append(r.Skipped, SkippedCell{Cell: c.ID, System: c.System, Where: r.shape.where(c), Trials: 1, Why: t.Error})
}

// place is where in the plan a trial belongs.
type place struct {
	cell  string
	block int
}

// latestOf are the IDs of the trials that stand for their places.
func latestOf(trials []record.Trial) map[place]int64 {
	latest := map[place]int64{}
	for _, t := range trials {
		p := place{t.Cell, t.Block}
		latest[p] = max(latest[p], t.ID)
	}
	return latest
}

func (r *Report) cells() []*Cell {
	all := make([]*Cell, len(r.Cells))
	for i := range r.Cells {
		all[i] = &r.Cells[i]
	}
	return all
}

// summarise fills each cell's medians, intervals and success rate.
func (r *Report) summarise() {
	for _, c := range r.cells() {
		var valid []Trial
		for _, t := range r.Trials {
			if t.Info == c && t.Valid() {
				valid = append(valid, t)
			}
		}
		c.Success = successOf(valid)
		for _, m := range r.Metrics {
			var xs []float64
			var blocks []int
			beyond := 0
			for _, t := range valid {
				x, ok := t.Metrics[m.Key]
				switch {
				case !Supported(m.Key, t.Trial):
				case !ok && censoredAway(m.Key, t.Trial):
					beyond++
				case ok && !math.IsNaN(x) && !math.IsInf(x, 0):
					xs, blocks = append(xs, x), append(blocks, t.Block)
				}
			}
			switch s := summaryOf(xs, blocks).withAll(beyond, side(m)); {
			case s.Median.Known():
				c.Metrics[m.Key] = s
			case beyond > 0:
				c.never[m.Key] = s
			}
		}
	}
}
