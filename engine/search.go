package engine

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// search is the policy of a search for the best combination of one system's factors:
// from what has been measured it says which trial comes next, and nothing else
// decides. So a resumed run goes on as it would have gone on.
//
// It walks: coordinate descent with races. From the default, each other level of one
// factor after the other races against where the walk stands, in interleaved
// repetitions; a faster one becomes where it stands; passes over all factors repeat
// until one changes nothing, or until the budget is used up. What it ends at is a
// local optimum: where two factors help only together, and neither gains alone, the
// walk never finds out. The factorial design does.
//
// Blocks are compared with blocks, so that what is drawn by block (rates, faults) is
// the same for both. Each race takes blocks of its own, in which both are executed
// anew: against trials of an earlier race, what drifts on the machine would count for
// one alone, and luck that has won once would win again. Its blocks are those after
// the last of the race before, which follows from what is recorded.
type search struct {
	system   string
	factors  []record.SearchFactor
	cells    map[string]string // by their levels, see levelsKey
	first    []int             // levels of the cell that the walk begins at: the default or, where the plan has not that, its first
	warmup   int               // trials of it before any race
	min, max int               // pairs of a race
	budget   float64           // seconds
}

// measured is what came of one trial of a search.
type measured struct {
	value   float64 // seconds of the sync; the deadline when it did not come to its end; NaN: the trial is not valid, or was left out
	seconds float64 // that the trial took with all that surrounds it; NaN: not known
	untried string  // why it was left out; empty: it was not
}

// searchConfidence is that of the interval which decides a race. A race looks at it
// after each pair, and each look may err: of races of nothing but noise, of 3 to 10
// pairs, 2 % say faster, and of 3 to 20 pairs 3 %; with 95 % it would be 8 and 12 %.
const searchConfidence = 0.99

// newSearch is the search of a plan for one of its systems.
func newSearch(plan *experiment.Plan, system string) search {
	rep := plan.Experiment.Repetitions
	s := search{
		system: system, cells: map[string]string{}, warmup: plan.Warmup,
		min: max(2, rep.Min), // one pair has no interval
		// Each system has its share.
		budget: plan.Experiment.Sync.Search.Budget.Seconds() / float64(max(1, len(plan.Experiment.Systems))),
	}
	s.max = max(s.min, rep.Max)
	for _, c := range cellsOf(plan, system) {
		var levels []int
		for _, f := range c.Factors {
			if f.Path != "system" {
				levels = append(levels, s.level(f))
			}
		}
		s.cells[levelsKey(levels)] = c.ID
	}
	s.first = make([]int, len(s.factors))
	return s
}

// level is the number of a factor's level, in the order in which the plan's cells
// name them: those of the first cell are all 0.
func (s *search) level(f experiment.Factor) int {
	i := slices.IndexFunc(s.factors, func(known record.SearchFactor) bool { return known.Path == f.Path })
	if i < 0 {
		i = len(s.factors)
		s.factors = append(s.factors, record.SearchFactor{Path: f.Path, Label: f.Label})
	}
	at := slices.Index(s.factors[i].Levels, f.Value)
	if at < 0 {
		at = len(s.factors[i].Levels)
		s.factors[i].Levels = append(s.factors[i].Levels, f.Value)
	}
	return at
}

func levelsKey(levels []int) string { return fmt.Sprint(levels) }

// step is what a search has come to.
type step struct {
	path record.Search
	want *trialKey // the trial that is to come next; nil: it has ended
}

// next walks as far as what has been measured goes. spent is the seconds that all of
// it took, preparation included.
func (s *search) next(done map[trialKey]measured, spent float64) step {
	w := walk{search: s, done: done, spent: spent, at: slices.Clone(s.first), raced: map[[2]string]bool{}, beaten: map[string]bool{}}
	w.path = record.Search{System: s.system, Factors: s.factors, Start: s.cells[levelsKey(s.first)], Spent: spent, Budget: s.budget, Trials: len(done), Races: []record.Race{}}
	w.run()
	w.path.Best = s.cells[levelsKey(w.at)]
	return step{w.path, w.want}
}

// walk is one walk along what has been measured.
type walk struct {
	*search
	done   map[trialKey]measured
	spent  float64
	path   record.Search
	want   *trialKey
	at     []int              // where it stands
	block  int                // the next race's first
	raced  map[[2]string]bool // incumbent and challenger
	beaten map[string]bool    // cells where it stood before
}

// over reports whether the walk can go no further: a trial is wanted, or may not be.
func (w *walk) over() bool { return w.want != nil || w.path.Ended != "" }

func (w *walk) run() {
	for block := -w.warmup; block < 0; block++ {
		if _, ok := w.result(w.path.Start, block, w.path.Start); !ok {
			return
		}
	}
	for pass := 1; ; pass++ {
		changed := false
		for i, f := range w.factors {
			for level := range f.Levels {
				if level == w.at[i] {
					continue
				}
				changed = w.race(pass, i, level) || changed
				if w.over() {
					return
				}
			}
		}
		if !changed {
			w.path.Ended, w.path.Why = record.SearchNoGain, "no other value of any factor is faster than where it stands, beyond the interval"
			if n := w.ended(record.RaceInvalid); n > 0 {
				w.path.Why += fmt.Sprintf("; of the races, %d had too few valid trials to tell", n)
			}
			if n := w.ended(record.RaceUntried); n > 0 {
				w.path.Why += fmt.Sprintf("; of the races, %d could not be executed on this machine", n)
			}
			return
		}
	}
}

// ended is how many races ended with a result.
func (w *walk) ended(result string) (n int) {
	for _, r := range w.path.Races {
		if r.Result == result {
			n++
		}
	}
	return n
}

// result is what was measured in a trial. When there is none it is wanted, unless the
// budget does not allow it; incumbent is the cell to judge by how long it will take
// when it is the cell's first.
func (w *walk) result(cell string, block int, incumbent string) (measured, bool) {
	key := trialKey{cell, block}
	if m, ok := w.done[key]; ok {
		return m, true
	}
	expected := w.expected(cell)
	if math.IsNaN(expected) {
		expected = w.expected(incumbent)
	}
	if w.spent >= w.budget || w.spent+expected > w.budget { // NaN: nothing is known yet
		w.path.Ended, w.path.Why = record.SearchBudget, fmt.Sprintf("%.0f of %.0f s are used up, and the next trial would go beyond", w.spent, w.budget)
		return measured{}, false
	}
	w.want = &key
	return measured{}, false
}

// expected is the mean seconds of a cell's trials so far; NaN: it had none.
func (w *walk) expected(cell string) float64 {
	sum, n := 0.0, 0
	for key, m := range w.done {
		if key.cell == cell && !math.IsNaN(m.seconds) {
			sum, n = sum+m.seconds, n+1
		}
	}
	return sum / float64(n)
}

// race lets one level of a factor race against where the walk stands, and reports
// whether it won.
func (w *walk) race(pass, factor, level int) (won bool) {
	f := w.factors[factor]
	to := slices.Clone(w.at)
	to[factor] = level
	r := record.Race{Pass: pass, Factor: f.Path, From: f.Levels[w.at[factor]], To: f.Levels[level], Incumbent: w.cells[levelsKey(w.at)]}
	challenger, there := w.cells[levelsKey(to)]
	r.Challenger = challenger
	pair := [2]string{r.Incumbent, levelsKey(to)}
	if w.raced[pair] {
		return false // it would end as it did
	}
	w.raced[pair] = true
	switch {
	case !there:
		r.Result, r.Why = record.RaceMissing, "the plan has no such cell"
	case w.beaten[challenger]:
		r.Result, r.Why = record.RaceBeaten, "the walk stood there before, and went on"
	default:
		w.compete(&r)
	}
	if r.Result == record.RaceOpen && r.Pairs == 0 && w.path.Ended != "" {
		return false // it never began
	}
	w.path.Races = append(w.path.Races, r)
	if r.Result != record.RaceFaster {
		return false
	}
	w.beaten[r.Incumbent] = true
	w.at = to
	return true
}

// compete takes pairs until the race is decided, or a trial is missing.
func (w *walk) compete(r *record.Race) {
	r.Result, r.Why = record.RaceOpen, "not decided"
	var ratios []float64 // logarithms
	void := 0
	for n := 0; ; n++ {
		block := w.block
		pair := []string{r.Incumbent, r.Challenger}
		if n%2 == 1 { // so that what drifts hits both alike
			slices.Reverse(pair)
		}
		values := map[string]float64{}
		for _, cell := range pair {
			m, ok := w.result(cell, block, r.Incumbent)
			if !ok {
				return
			}
			if m.untried != "" {
				r.Result, r.Why = record.RaceUntried, fmt.Sprintf("the %s could not be tried: %s", map[bool]string{true: "incumbent", false: "challenger"}[cell == r.Incumbent], m.untried)
				return
			}
			if values[cell] = m.value; math.IsNaN(m.value) {
				break // the other of the pair would be of no use
			}
		}
		w.block++
		ratio := math.Log(values[r.Challenger] / values[r.Incumbent])
		if math.IsNaN(ratio) || math.IsInf(ratio, 0) {
			if void++; void > w.max {
				r.Result, r.Why = record.RaceInvalid, fmt.Sprintf("%d of %d pairs have a trial that is not valid", void, n+1)
				return
			}
			continue
		}
		ratios = append(ratios, ratio)
		mid, half := meanInterval(ratios)
		r.Pairs, r.Ratio = len(ratios), math.Exp(mid)
		if r.Pairs > 1 {
			r.Lo, r.Hi = math.Exp(mid-half), math.Exp(mid+half)
		}
		switch {
		case r.Pairs < w.min:
		case mid+half < 0:
			r.Result, r.Why = record.RaceFaster, "the interval is below 1"
			return
		case mid-half > 0:
			r.Result, r.Why = record.RaceSlower, "the interval is above 1"
			return
		case r.Pairs >= w.max:
			r.Result, r.Why = record.RaceSame, "repetitions are used up, and the interval holds 1"
			return
		}
	}
}

// meanInterval is the mean of some values and half the width of Student's interval
// of it; +Inf for one value.
func meanInterval(values []float64) (mid, half float64) {
	n := float64(len(values))
	for _, v := range values {
		mid += v / n
	}
	if n < 2 {
		return mid, math.Inf(1)
	}
	var squares float64
	for _, v := range values {
		squares += (v - mid) * (v - mid)
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1 + searchConfidence) / 2)
	return mid, t * math.Sqrt(squares/(n-1)/n)
}

// atMost is how many trials the search will have executed in the end, at most: by
// what its budget allows when trials take as long as until now, and by what there is
// to be executed.
func (s *search) atMost(done map[trialKey]measured, spent float64) int {
	sum, n := 0.0, 0
	for _, m := range done {
		if !math.IsNaN(m.seconds) {
			sum, n = sum+m.seconds, n+1
		}
	}
	races := 0
	for _, f := range s.factors {
		races += len(f.Levels) - 1
	}
	all := len(s.cells)*races*2*s.max + s.warmup
	if n > 0 && sum > 0 {
		if more := math.Ceil((s.budget - spent) / (sum / float64(n))); more < float64(all) {
			all = min(all, len(done)+int(max(0, more)))
		}
	}
	return max(all, len(done)+1)
}
