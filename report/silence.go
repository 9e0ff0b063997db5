package report

import (
	"math"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
)

// silences gathers, of each cell whose requests follow one another without a pause,
// the times between seconds in which bytes came or a request ended. Requests whose
// answers are slow to begin are no pause: the usual ones are as long.
func (r *Report) silences(in *input) {
	if in.windows == nil {
		return
	}
	r.moving = nil
	for _, c := range r.cells() {
		if c.plan.Retrieve == nil || c.plan.Retrieve.Arrivals != nil {
			continue // there is not always something under way
		}
		m := findings.Moving{Name: r.shape.named(c), Resolution: record.WindowSeconds}
		for i := range r.Trials {
			t := &r.Trials[i]
			if t.Info != c || !t.Valid() {
				continue
			}
			was := math.NaN()
			for w, err := range in.windows(t.ID) {
				if err != nil {
					in.err = err
					return
				}
				if w.Bytes == 0 && w.Ops() == 0 {
					continue
				}
				at := float64(w.Second) * record.WindowSeconds
				if at > was { // false for NaN
					m.Pauses = append(m.Pauses, findings.Silent{Trial: t.ID, From: was, To: at})
				}
				was = at
			}
		}
		r.moving = append(r.moving, m)
	}
}

// silent: nothing came though requests were under way.
func silent(r *Report) []Finding { return findings.Stalls(r.moving) }
