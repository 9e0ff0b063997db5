package report

import (
	"cmp"
	"slices"

	"github.com/plimsoll-project/plimsoll/record"
)

// lives tells the trials of a system apart by what its processes had been
// through, of all trials, valid or not.
type lives struct {
	first map[int64]bool // the first with numbers since the processes began
	own   map[int64]bool // nothing larger had been handled since then
}

// prepared is the most bytes of an object that a system holds before its first
// trial: it was stored there, through its processes.
func (r *Report) prepared(system string) float64 {
	most := 0.0
	for _, c := range r.cells() {
		if o := c.overhead(); o != nil && c.System == system {
			switch o.Operation {
			case "get", "stat", "update":
				most = max(most, c.size())
			case "range":
				most = max(most, float64(o.RangeOf))
			}
		}
	}
	return most
}

// lived follows the processes of each system through the run.
func (r *Report) lived() lives {
	type life struct {
		pids map[float64]bool // empty: not told
		most float64          // bytes handled at once
		seen bool             // a trial had numbers
	}
	all := map[string]*life{}
	l := lives{map[int64]bool{}, map[int64]bool{}}
	trials := make([]*Trial, 0, len(r.Trials))
	for i := range r.Trials {
		if t := &r.Trials[i]; t.Info.overhead() != nil && t.State != record.Skipped {
			trials = append(trials, t)
		}
	}
	slices.SortStableFunc(trials, func(a, b *Trial) int { return cmp.Compare(a.ID, b.ID) })
	for _, t := range trials {
		system := t.Info.System
		pids, same := map[float64]bool{}, false
		now := all[system]
		for _, d := range t.Details {
			if d.Kind == record.DetailPID {
				pids[d.Value] = true
				same = same || now != nil && now.pids[d.Value]
			}
		}
		if now == nil || len(pids) > 0 && len(now.pids) > 0 && !same {
			now = &life{most: r.prepared(system)}
			all[system] = now
		}
		if len(pids) > 0 {
			now.pids = pids
		}
		if !now.seen && len(detail(t, record.DetailRSSRest)) > 0 {
			now.seen, l.first[t.ID] = true, true
		}
		if bytes := t.Info.size() * float64(max(1, t.Info.overhead().Concurrency)); bytes >= now.most {
			now.most, l.own[t.ID] = bytes, true
		}
	}
	return l
}
