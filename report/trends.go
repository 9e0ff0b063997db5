package report

import (
	"github.com/plimsoll-project/plimsoll/stats"
)

// Trend says how the time of an operation changes with the number of objects
// that the servers hold.
type Trend struct {
	System    string   `json:"system"`
	Where     string   `json:"where"` // the factors of its cells
	Operation string   `json:"operation"`
	N         int      `json:"n"`    // valid trials
	Cut       int      `json:"cut"`  // valid trials whose time is not known, because operations were cut off
	From      Num      `json:"from"` // objects stored, fewest
	To        Num      `json:"to"`   // most
	Median    Num      `json:"median"`
	Slope     Estimate `json:"slope"` // seconds per 1000 objects
	Shown     bool     `json:"shown"` // it is not 0, corrected for all slopes of the report

	cell *Cell
	x, y []float64
}

// riseAlpha is the share of reports without any slope in which one may be shown to
// rise, whatever the number of slopes. There is no least slope beside it: a small
// one grows with the objects that are not stored yet.
const riseAlpha = 0.01

// trends fills the slopes of the cells that add object after object.
func (r *Report) trends() {
	r.Trends = []Trend{}
	for _, c := range r.cells() {
		if c.overhead() == nil || c.overhead().Operation != "fill" {
			continue
		}
		for _, op := range []string{"put", "get", "stat"} {
			t := Trend{System: c.System, Where: r.shape.where(c), Operation: op, From: unknown, To: unknown, Median: unknown, Slope: noEstimate, cell: c}
			var x, y []float64
			for _, p := range r.filled(c, op) {
				x, y = append(x, p.stored/1000), append(y, p.took)
				t.From, t.To = least(t.From, p.stored), highest(t.To, p.stored)
			}
			t.N, t.Cut = len(x), r.cutOff(c, op)
			if t.N+t.Cut == 0 {
				continue
			}
			if t.N > 0 {
				t.Median = Num(middle(y))
			}
			if len(x) > 2 && t.To > t.From {
				t.Slope, t.x, t.y = estimateOf(stats.Slope(x, y, Confidence)), x, y
			}
			r.Trends = append(r.Trends, t)
		}
	}
	r.showTrends()
}

// showTrends decides which slopes are shown.
func (r *Report) showTrends() {
	asked := 0
	for _, t := range r.Trends {
		if t.x != nil {
			asked++
		}
	}
	for i := range r.Trends {
		if t := &r.Trends[i]; t.x != nil {
			// Each end of the interval is for one direction.
			q := stats.Slope(t.x, t.y, 1-2*riseAlpha/float64(asked))
			t.Shown = q.Lo > 0 || q.Hi < 0
		}
	}
}

// fillPoint is one trial that added objects.
type fillPoint struct {
	trial        *Trial
	stored, took float64
}

// filled are the valid trials of a cell with the time of an operation.
func (r *Report) filled(c *Cell, operation string) []fillPoint {
	var all []fillPoint
	for i := range r.Trials {
		t := &r.Trials[i]
		stored, known := t.Metrics["stored_objects"]
		took, timed := t.Metrics[operation+"_p50"]
		if t.Info == c && t.Valid() && known && timed {
			all = append(all, fillPoint{t, stored, took})
		}
	}
	return all
}

// cutOff counts the valid trials of a cell that lack the time of an operation
// because the experiment cut operations off. Not every system can be asked for
// its objects: an operation that no trial of the system has a time of was not done.
func (r *Report) cutOff(c *Cell, operation string) int {
	key, n, done := operation+"_p50", 0, operation != "stat"
	for i := range r.Trials {
		t := &r.Trials[i]
		if !t.Valid() || t.Info.System != c.System {
			continue
		}
		_, timed := t.Metrics[key]
		done = done || timed
		if t.Info == c && !timed && censoredAway(key, t.Trial) {
			n++
		}
	}
	if !done {
		return 0
	}
	return n
}
