package report

import (
	"math"
	"slices"

	"github.com/plimsoll-project/plimsoll/stats"
)

// Against is an operation's time divided by what the baseline's fit gives for
// the same absolute bytes and round trip: the geometric mean over cells of each
// cell's median.
type Against struct {
	System    string   `json:"system"`
	Operation string   `json:"operation"` // of the baseline
	N         int      `json:"n"`         // trials
	Ratio     Estimate `json:"ratio"`
	Least     Extreme  `json:"least"`
	Most      Extreme  `json:"most"`
}

// writes are the operations that send a file's bytes to storage nodes.
func writes(operation string) bool {
	switch operation {
	case "put", "put-durable", "put-dir", "update":
		return true
	}
	return false
}

// lineShare is the rate at which a file's bytes move as a share of what the
// link, as measured, can carry of them: its rate, divided for an upload by the
// expansion at the largest size.
func (r *Report) lineShare(f *Fit, trials []*Trial) Estimate {
	var rates, expansions []float64
	for _, t := range trials {
		if l, ok := r.checks[t.ID]; ok && l.WantRate > 0 && l.Rate > 0 {
			rates = append(rates, l.Rate/8)
		}
		if x := t.Metrics["expansion"]; Num(t.Info.size()) == f.To && x > 1 && writes(f.Operation) {
			expansions = append(expansions, x)
		}
	}
	if len(rates) == 0 || !f.Rate.Value.Known() || f.Inline.whole() {
		return noEstimate
	}
	line := middle(rates)
	if len(expansions) > 0 {
		line /= middle(expansions)
	}
	return f.Rate.times(1 / line)
}

// equivalent is the baseline's operation that an operation is held against:
// the same, or what moves the same bytes.
func equivalent(operation string) []string {
	if operation != "put" && writes(operation) {
		return []string{operation, "put"}
	}
	return []string{operation}
}

// against compares with the baseline as the study did: with what the baseline
// takes for as many bytes as this system sends to its storage nodes.
func (r *Report) against(f *Fit) *Against {
	if r.Baseline == "" || f.System == r.Baseline || f.model == nil || f.Inline.whole() {
		return nil
	}
	var base *Fit
	for _, op := range equivalent(f.Operation) {
		if base = r.fitOf(task{r.Baseline, op, f.Connections}); base != nil {
			break
		}
	}
	// Without round trips in both or in neither, the two models are not of one link.
	if base == nil || base.Inline.whole() || base.Rounds.Value.Known() != f.Rounds.Value.Known() {
		return nil
	}
	a := &Against{System: r.Baseline, Operation: base.Operation}
	var order []*Cell
	ratios, blocks := map[*Cell][]float64{}, map[*Cell][]int{}
	for _, p := range f.residual {
		t, rtt, expansion := p.trial, 0.0, 1.0
		if f.Rounds.Value.Known() {
			rtt = r.checks[t.ID].RTT
		}
		if x := t.Metrics["expansion"]; writes(f.Operation) && x > 0 {
			expansion = x
		}
		want := base.model.Predict(rtt, expansion*t.Info.size())
		if !(want > 0) {
			continue
		}
		if ratios[t.Info] == nil {
			order = append(order, t.Info)
		}
		ratios[t.Info], blocks[t.Info] = append(ratios[t.Info], t.Metrics["duration_p50"]/want), append(blocks[t.Info], t.Block)
		a.N++
	}
	if a.N == 0 {
		return nil
	}
	var rows [][]float64
	var centres []float64
	for i, c := range order {
		v := Num(stats.Median(ratios[c]))
		row := slices.Repeat([]float64{math.NaN()}, slices.Max(blocks[c])+1)
		for k, b := range blocks[c] {
			row[b] = math.Log(ratios[c][k])
		}
		rows, centres = append(rows, row), append(centres, math.Log(float64(v)))
		if i == 0 || v < a.Least.Value {
			a.Least = Extreme{r.placeOf(c), v}
		}
		if i == 0 || v > a.Most.Value {
			a.Most = Extreme{r.placeOf(c), v}
		}
	}
	i, _ := stats.PairedRatio(stats.BlockMeans(rows, centres), Confidence)
	a.Ratio = Estimate{Num(math.Exp(total(centres) / float64(len(centres)))), unknown, unknown}
	if i.Bounded() {
		a.Ratio.Lo, a.Ratio.Hi = min(Num(i.Lo), a.Ratio.Value), max(Num(i.Hi), a.Ratio.Value)
	}
	return a
}
