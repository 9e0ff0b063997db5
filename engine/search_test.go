package engine

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// searchPlan is a plan with all combinations of so many levels of each factor.
func searchPlan(budget time.Duration, least, most, warmup int, levels ...int) *experiment.Plan {
	plan := &experiment.Plan{Warmup: warmup, Blocks: most, Experiment: experiment.Experiment{
		Systems:     []experiment.SystemUse{{Name: "a", Use: "a"}},
		Repetitions: experiment.Repetitions{Min: least, Max: most},
		Limits:      experiment.Limits{Deadline: experiment.Duration(100 * time.Second)},
		Sync:        &experiment.Sync{Search: &experiment.Search{Budget: experiment.Duration(budget)}},
	}}
	at := make([]int, len(levels))
	var each func(i int)
	each = func(i int) {
		if i == len(levels) {
			c := experiment.Cell{ID: "c" + strings.Trim(strings.ReplaceAll(fmt.Sprint(at), " ", ""), "[]"), System: "a", Sync: &experiment.ResolvedSync{}}
			c.Factors = []experiment.Factor{{Path: "system", Value: "a"}}
			for f, l := range at {
				c.Factors = append(c.Factors, experiment.Factor{Path: fmt.Sprint("f", f), Label: fmt.Sprint("f", f), Value: fmt.Sprint(l)})
			}
			plan.Cells = append(plan.Cells, c)
			return
		}
		for l := range levels[i] {
			at[i] = l
			each(i + 1)
		}
	}
	each(0)
	return plan
}

// lab is a machine whose trials take the time that is said, with some noise that is
// the same when a trial is executed again.
type lab struct {
	s      search
	time   func(cell string) float64
	noise  float64
	set    float64 // seconds around each trial
	broken func(key trialKey) bool
	order  []trialKey
	done   map[trialKey]measured
	spent  float64
}

func (l *lab) execute(key trialKey) {
	h := rand.New(rand.NewPCG(trialSeed(1, key.cell, key.block), 0))
	v := l.time(key.cell) * math.Exp(l.noise*h.NormFloat64())
	m := measured{value: v, seconds: v + l.set}
	if l.broken != nil && l.broken(key) {
		m.value = math.NaN()
	}
	l.done[key], l.spent = m, l.spent+m.seconds
	l.order = append(l.order, key)
}

// walk executes what the search asks for, until it ends.
func (l *lab) walk(t *testing.T) record.Search {
	t.Helper()
	if l.done == nil {
		l.done = map[trialKey]measured{}
	}
	for range 10000 {
		next := l.s.next(l.done, l.spent)
		if next.want == nil {
			if next.path.Ended == "" || next.path.Why == "" || next.path.Trials != len(l.done) {
				t.Errorf("it ended without a word: %+v", next.path)
			}
			return next.path
		}
		if _, again := l.done[*next.want]; again {
			t.Fatalf("%v is wanted twice", *next.want)
		}
		if most := l.s.atMost(l.done, l.spent); most <= len(l.done) {
			t.Fatalf("%d trials are done, of at most %d", len(l.done), most)
		}
		l.execute(*next.want)
	}
	t.Fatal("it never ends")
	return record.Search{}
}

// factors reads the levels out of a cell's name.
func factors(cell string) []int {
	var all []int
	for _, c := range cell[1:] {
		all = append(all, int(c-'0'))
	}
	return all
}

// separable is a time whose factors each have an effect of their own.
func separable(cell string) float64 {
	effects := [][]float64{{1, 0.8, 1.3}, {1, 1.01}, {1, 2, 0.5, 0.7}}
	v := 10.0
	for f, l := range factors(cell) {
		v *= effects[f][l]
	}
	return v
}

// Where each factor has an effect of its own, the walk ends at the optimum, having
// executed a part of the combinations.
func TestSearchFindsTheOptimumOfSeparableEffects(t *testing.T) {
	l := &lab{s: newSearch(searchPlan(time.Hour, 3, 6, 1, 3, 2, 4), "a"), time: separable, noise: 0.01}
	path := l.walk(t)
	if path.Start != "c000" || !slices.Contains([]string{"c102", "c112"}, path.Best) || path.Ended != record.SearchNoGain {
		t.Errorf("from %s to %s: %s", path.Start, path.Best, path.Why)
	}
	cells := map[string]bool{}
	for _, key := range l.order {
		cells[key.cell] = true
	}
	if len(cells) >= 24/2 || l.order[0] != (trialKey{"c000", -1}) {
		t.Errorf("%d cells in %d trials, the first %v", len(cells), len(l.order), l.order[0])
	}
	// The first race: level 1 of the first factor gains a fifth.
	if r := path.Races[0]; r.Result != record.RaceFaster || r.Factor != "f0" || r.From != "0" || r.To != "1" || r.Incumbent != "c000" || r.Challenger != "c100" || r.Pairs != 3 || r.Lo > 0.8 || r.Hi < 0.8 {
		t.Errorf("first race: %+v", r)
	}
	for _, r := range path.Races {
		if r.Result == record.RaceBeaten { // where it has been
			continue
		}
		won := r.Result == record.RaceFaster
		if r.Pairs < 3 || r.Pairs > 6 || r.Why == "" || won != (r.Hi < 1) || (r.Result == record.RaceSlower) != (r.Lo > 1) || r.Result == record.RaceSame && r.Pairs != 6 {
			t.Errorf("race %+v", r)
		}
	}
	// The trials of a race are interleaved, the first of a pair in turn.
	if want := []trialKey{{"c000", 0}, {"c100", 0}, {"c100", 1}, {"c000", 1}, {"c000", 2}, {"c100", 2}}; !slices.Equal(l.order[1:7], want) {
		t.Errorf("order %v", l.order[:7])
	}
}

// Two factors that help the more together are found, too, as long as one of them
// alone helps; a second pass finds what the first could not.
func TestSearchOfInteractingEffects(t *testing.T) {
	times := map[string]float64{"c00": 10, "c10": 11, "c01": 8, "c11": 4} // f0 hurts, unless f1 is set
	l := &lab{s: newSearch(searchPlan(time.Hour, 3, 5, 0, 2, 2), "a"), time: func(cell string) float64 { return times[cell] }, noise: 0.01}
	path := l.walk(t)
	if path.Best != "c11" || path.Races[len(path.Races)-1].Pass < 2 {
		t.Errorf("it ends at %s: %+v", path.Best, path.Races)
	}
}

// What helps only together is not found: it is a walk, not a factorial design.
func TestSearchGetsStuckInALocalOptimum(t *testing.T) {
	times := map[string]float64{"c00": 10, "c10": 11, "c01": 11, "c11": 2}
	l := &lab{s: newSearch(searchPlan(time.Hour, 3, 5, 0, 2, 2), "a"), time: func(cell string) float64 { return times[cell] }, noise: 0.01}
	if path := l.walk(t); path.Best != "c00" || path.Ended != record.SearchNoGain {
		t.Errorf("it ends at %s: %+v", path.Best, path.Races)
	}
}

// Where no factor has an effect, noise rarely leads it anywhere, and it ends.
func TestSearchOfNothing(t *testing.T) {
	moved := 0
	const runs = 200
	for seed := range runs {
		l := &lab{s: newSearch(searchPlan(time.Hour, 5, 10, 0, 2, 2), "a"), noise: 0.1, time: func(string) float64 { return 10 }}
		l.done = map[trialKey]measured{}
		for next := l.s.next(l.done, 0); next.want != nil; next = l.s.next(l.done, l.spent) {
			rng := rand.New(rand.NewPCG(uint64(seed), trialSeed(1, next.want.cell, next.want.block)))
			l.done[*next.want] = measured{value: 10 * math.Exp(0.1*rng.NormFloat64()), seconds: 10}
		}
		if l.s.next(l.done, l.spent).path.Best != "c00" {
			moved++
		}
	}
	if moved > runs/10 {
		t.Errorf("%d of %d walks of nothing but noise went somewhere", moved, runs)
	}
}

// A machine that becomes faster from trial to trial, as caches warm up, has no value
// win: hardly more races than the interval allows say faster, and none is decided by
// trials of an earlier one.
func TestSearchOfNothingOnAMachineThatDrifts(t *testing.T) {
	races, faster := 0, 0
	for seed := range 60 {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		s := newSearch(searchPlan(1000*time.Hour, 3, 6, 0, 2, 2, 2, 2, 2), "a")
		done := map[trialKey]measured{}
		next := s.next(done, 0)
		for ; next.want != nil; next = s.next(done, 0) {
			drift := math.Exp(-0.005 * float64(len(done)))
			done[*next.want] = measured{value: 10 * drift * math.Exp(0.03*rng.NormFloat64()), seconds: 10}
		}
		pairs := 0
		for _, r := range next.path.Races {
			if r.Pairs == 0 {
				continue
			}
			races++
			pairs += r.Pairs
			if r.Result == record.RaceFaster {
				faster++
			}
		}
		if len(done) != 2*pairs {
			t.Fatalf("%d trials for %d pairs: some count in more than one race", len(done), pairs)
		}
	}
	if races < 300 || faster*20 > races {
		t.Errorf("%d of %d races of nothing say faster", faster, races)
	}
}

// The walk stays within its budget, but for what a cell takes longer that nothing is
// known of, and what it has found by then is its answer.
func TestSearchStaysWithinItsBudget(t *testing.T) {
	for _, budget := range []time.Duration{time.Second, 30 * time.Second, 61 * time.Second, 150 * time.Second, 300 * time.Second} {
		l := &lab{s: newSearch(searchPlan(budget, 3, 5, 1, 3, 2, 4), "a"), time: separable, noise: 0.01, set: 1}
		path := l.walk(t)
		longest := 0.0
		for _, m := range l.done {
			longest = max(longest, m.seconds)
		}
		if path.Ended != record.SearchBudget || l.spent > budget.Seconds()+longest || path.Spent != l.spent {
			t.Errorf("%s: %s, %g s spent", budget, path.Why, l.spent)
		}
		if l.spent < budget.Seconds()-longest {
			t.Errorf("%s: only %g s spent", budget, l.spent)
		}
	}
	// What preparation took is not there for trials.
	s := newSearch(searchPlan(time.Minute, 3, 5, 0, 2), "a")
	if next := s.next(nil, 60); next.want != nil || next.path.Ended != record.SearchBudget {
		t.Errorf("nothing is left, and %+v", next)
	}
	two := searchPlan(time.Minute, 3, 5, 0, 2)
	two.Experiment.Systems = append(two.Experiment.Systems, experiment.SystemUse{Name: "b"})
	if s := newSearch(two, "a"); s.budget != 30 {
		t.Errorf("of two systems each has %g s", s.budget)
	}
}

// Wherever a session is cut off, the next one decides as it would have.
func TestSearchResumed(t *testing.T) {
	broken := func(key trialKey) bool { return (key.block+len(key.cell))%4 == 0 && key.cell != "c000" }
	for _, budget := range []time.Duration{time.Hour, 300 * time.Second} {
		whole := &lab{s: newSearch(searchPlan(budget, 3, 5, 2, 3, 2, 4), "a"), time: separable, noise: 0.05, set: 1, broken: broken}
		want := whole.walk(t)
		for cut := range whole.order {
			l := &lab{s: newSearch(searchPlan(budget, 3, 5, 2, 3, 2, 4), "a"), time: separable, noise: 0.05, set: 1, broken: broken, done: map[trialKey]measured{}}
			for _, key := range whole.order[:cut] {
				l.execute(key)
			}
			got := l.walk(t)
			if d := cmp.Diff(want, got); d != "" || !slices.Equal(l.order, whole.order) {
				t.Fatalf("cut off after %d trials: %s", cut, d)
			}
		}
	}
}

// A trial that is not valid is repeated with another block, and one cell that never
// gives a valid one loses nobody more than a bounded number of trials.
func TestSearchAmongInvalidTrials(t *testing.T) {
	s := newSearch(searchPlan(time.Hour, 3, 4, 0, 2, 2), "a")
	never := &lab{s: s, time: separable, broken: func(key trialKey) bool { return key.cell == "c10" }}
	never.time = func(cell string) float64 { return 10 - 3*float64(factors(cell)[1]) }
	path := never.walk(t)
	if path.Best != "c01" || path.Races[0].Result != record.RaceInvalid || path.Races[0].Pairs != 0 || !strings.Contains(path.Why, "too few valid trials") {
		t.Errorf("%+v", path)
	}
	if n := count(never.order, "c10"); n != 5 {
		t.Errorf("%d trials of the cell that gives none", n)
	}
	once := &lab{s: s, time: never.time, noise: 0.001, broken: func(key trialKey) bool { return key == trialKey{"c01", 0} || key == trialKey{"c00", 2} }}
	path = once.walk(t)
	i := slices.IndexFunc(path.Races, func(r record.Race) bool { return r.Challenger == "c01" })
	if path.Best != "c01" || i < 0 || path.Races[i].Pairs != 3 {
		t.Errorf("%+v", path)
	}
}

// What this machine cannot execute is neither slower nor faster, and is tried once.
func TestSearchOfWhatCannotBeTried(t *testing.T) {
	s := newSearch(searchPlan(time.Hour, 3, 4, 0, 2, 2), "a")
	done, tries := map[trialKey]measured{}, 0
	next := s.next(done, 0)
	for ; next.want != nil; next = s.next(done, 0) {
		at := factors(next.want.cell)
		m := measuredTrial(record.Trial{State: record.Done, Outcomes: map[string]int64{"ok": 2}, Metrics: map[string]float64{searchMetric: 10 - 3*float64(at[1])}}, experiment.Limits{}, 1)
		if at[0] == 1 {
			m = measuredTrial(record.Trial{State: record.Skipped, Error: "no RAM disk of 1 GiB"}, experiment.Limits{Deadline: experiment.Duration(time.Minute)}, 1)
			tries++
		}
		done[*next.want] = m
	}
	r := next.path.Races[0]
	if r.Result != record.RaceUntried || r.Pairs != 0 || r.Ratio != 0 || r.Why != "the challenger could not be tried: no RAM disk of 1 GiB" {
		t.Errorf("%+v", r)
	}
	if next.path.Best != "c01" || tries != 2 || !strings.Contains(next.path.Why, "2 could not be executed") {
		t.Errorf("%d tries, %+v", tries, next.path)
	}
}

func count(order []trialKey, cell string) (n int) {
	for _, key := range order {
		if key.cell == cell {
			n++
		}
	}
	return n
}

// A plan need not have all combinations.
func TestSearchAmongSomeOfTheCells(t *testing.T) {
	plan := searchPlan(time.Hour, 3, 4, 0, 2, 3)
	plan.Cells = slices.DeleteFunc(plan.Cells, func(c experiment.Cell) bool { return c.ID == "c10" || c.ID == "c11" })
	l := &lab{s: newSearch(plan, "a"), noise: 0.01, time: func(cell string) float64 { return []float64{10, 9, 5}[factors(cell)[1]] / float64(1+factors(cell)[0]) }}
	path := l.walk(t)
	if path.Best != "c12" || path.Races[0].Result != record.RaceMissing {
		t.Errorf("%+v", path)
	}
}

// Where one beats the other by chance, in turn, the walk does not go in circles.
func TestSearchDoesNotGoInCircles(t *testing.T) {
	// Three levels: each beats the one before by what its odd blocks say.
	values := map[string][]float64{"c0": {10, 10, 10}, "c1": {9, 9, 9}, "c2": {8, 8, 8}}
	s := newSearch(searchPlan(time.Hour, 2, 3, 0, 3), "a")
	done := map[trialKey]measured{}
	next := s.next(done, 0)
	for ; next.want != nil; next = s.next(done, 0) {
		done[*next.want] = measured{value: values[next.want.cell][next.want.block%3], seconds: 1}
		if next.want.cell == "c2" { // since then the first is faster than all
			values["c0"] = []float64{10, 10, 1}
		}
	}
	if next.path.Best != "c2" || !slices.ContainsFunc(next.path.Races, func(r record.Race) bool { return r.Result == record.RaceBeaten }) {
		t.Errorf("%+v", next.path)
	}
}

// What a trial counts for in a search.
func TestSearchValue(t *testing.T) {
	limits := experiment.Limits{Deadline: experiment.Duration(time.Minute)}
	metrics := map[string]float64{searchMetric: 12}
	for name, c := range map[string]struct {
		trial record.Trial
		want  float64
	}{
		"synced":   {record.Trial{State: record.Done, Metrics: metrics, Outcomes: map[string]int64{"ok": 2, "error": 0}}, 12},
		"stalled":  {record.Trial{State: record.Done, Metrics: metrics, Outcomes: map[string]int64{"ok": 1, "stalled": 1}}, 60},
		"no value": {record.Trial{State: record.Done, Outcomes: map[string]int64{"ok": 2}}, 60},
		"nothing":  {record.Trial{State: record.Done, Metrics: metrics}, 60},
		"skipped":  {record.Trial{State: record.Skipped, Error: "no RAM disk"}, math.NaN()},
		"invalid":  {record.Trial{State: record.Done, Metrics: metrics, Outcomes: map[string]int64{"ok": 2}, Invalid: []string{"box-busy"}}, math.NaN()},
	} {
		got := measuredTrial(c.trial, limits, 1)
		if got.value != c.want && !(math.IsNaN(got.value) && math.IsNaN(c.want)) || got.untried != c.trial.Error {
			t.Errorf("%s: %+v, want %g", name, got, c.want)
		}
	}
}

// The path can be written down at any point: no number in it is without end.
func TestSearchCanBeRecorded(t *testing.T) {
	l := &lab{s: newSearch(searchPlan(time.Hour, 3, 5, 1, 3, 2), "a"), time: separable, noise: 0.05}
	l.walk(t)
	done := map[trialKey]measured{}
	for _, key := range l.order {
		path := l.s.next(maps.Clone(done), 0).path
		b, err := json.Marshal([]record.Search{path})
		if err != nil {
			t.Fatal(err)
		}
		var back []record.Search
		if err := json.Unmarshal(b, &back); err != nil || cmp.Diff([]record.Search{path}, back) != "" {
			t.Fatalf("%v\n%s", err, b)
		}
		done[key] = l.done[key]
	}
}
