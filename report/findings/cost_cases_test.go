package findings

import (
	"math"
	"slices"
	"testing"
)

// costCases are of the rules that look at what an operation costs.
func costCases() map[string]example {
	against := func(all []SameBytes) []Finding { return AgainstSameBytes(all, "sftp") }
	holds := CostFit{Name: "a, put", Fitted: true, Tested: true, Holds: true, Spread: 0.01, Misfit: 0.01}
	fit := func(change func(*CostFit)) []CostFit {
		f := holds
		change(&f)
		return []CostFit{f}
	}
	misses := func(by float64) func(*CostFit) { return func(f *CostFit) { f.Holds, f.Misfit = false, by } }
	slope := Value{0.2, 0.1, 0.3, 12}
	return map[string]example{
		"model":          when(CostModels, fit(misses(0.3)), fit(misses(0.05))),
		"model-near":     when(CostModels, fit(misses(0.05)), fit(misses(0.3))),
		"model-untested": when(CostModels, fit(func(f *CostFit) { f.Tested, f.Holds = false, false }), []CostFit{holds}),
		"no-fit":         when(CostModels, fit(func(f *CostFit) { f.Fitted = false }), []CostFit{holds}),
		"inline":         when(Inlined, []Crossing{{"a, get", "up to 55 B nothing crosses"}}, []Crossing{{"a, get", ""}}),
		"same-bytes":     when(against, []SameBytes{{Name: "a, put", Ratio: Value{2, 1.9, 2.1, 12}}}, []SameBytes{{Name: "a, put"}}),
		"memory-grows":   when(MemoryGrows, []Peak{{Name: "a", Slope: Value{0.5, 0.4, 0.6, 1}, Grows: "yes"}}, []Peak{{Name: "a", Slope: Value{0.1, 0, 0.6, 1}}}),
		"memory-flat":    when(MemoryGrows, []Peak{{Name: "a", AtMost: 0.01, Grows: "no"}}, []Peak{{Name: "a", Slope: Value{0.1, 0, 0.6, 1}}}),
		"objects-slope":  when(ObjectsSlope, []Filling{{Name: "a, put", Known: 12, Slope: slope, Shown: true}}, []Filling{{Name: "a, put", Known: 12, Slope: slope}}),
		"objects-flat":   when(ObjectsSlope, []Filling{{Name: "a, put", Known: 12, Slope: slope}}, []Filling{{Name: "a, put", Known: 12, Cut: 1, Slope: slope}}),
		"objects-cut":    when(ObjectsSlope, []Filling{{Name: "a, put", Known: 12, Cut: 1, Slope: slope}}, []Filling{{Name: "a, put", Known: 12, Slope: slope}}),
	}
}

// What is said of costs, with its figures.
func TestWhatIsSaidOfCosts(t *testing.T) {
	slope := Value{0.2, 0.1, 0.3, 12}
	for name, c := range map[string]struct {
		all      []Finding
		evidence []string
	}{
		"model": {CostModels([]CostFit{{Name: "a, put", Fitted: true, Tested: true, Why: "p = 0.001", Spread: 0.05, Misfit: 0.3}, {Name: "holds", Fitted: true, Tested: true, Holds: true}, {Name: "not tested, and no sign", Fitted: true, Holds: true}}),
			[]string{"a, put: p = 0.001; residuals spread by 5 %, the worst cell is off by 30 %"}},
		"at the limit it is no near one": {CostModels([]CostFit{{Name: "a", Fitted: true, Tested: true, Why: "w", Misfit: NearMisfit}}),
			[]string{"a: w; residuals spread by 0 %, the worst cell is off by 10 %"}},
		"no fit": {CostModels([]CostFit{{Name: "a, put", Why: "1 point for 3 parameters", Holds: true}}),
			[]string{"a, put: 1 point for 3 parameters"}},
		"same bytes": {AgainstSameBytes([]SameBytes{{Name: "a, put", Ratio: Value{2, 1.9, 2.1, 12}, Operation: "put-durable", Doubtful: true, Least: Cell{"1 MB", 1.5}, Most: Cell{"1 GB", 3}},
			{Name: "of one cell", Ratio: Value{2, 1.9, 2.1, 6}, Least: Cell{"1 MB", 2}, Most: Cell{"1 MB", 2}}}, "sftp"),
			[]string{"a, put: 2.00× (1.90–2.10) (its put-durable), by a fit of the baseline that does not hold; from 1.50× (1 MB) to 3.00× (1 GB)", "of one cell: 2.00× (1.90–2.10)"}},
		"memory": {MemoryGrows([]Peak{{Name: "a, storage", Bytes: 2e8, Largest: "64 MiB", Slope: Value{0.5, 0.4, 0.6, 1}, Hidden: true, Grows: "yes"}}),
			[]string{"a, storage: at least 0.500 (0.400–0.600) B of memory for each file byte, up to 64 MiB; peak 200 MB"}},
		"objects": {ObjectsSlope([]Filling{{Name: "a, put", Where: "10 ms", Known: 12, From: 1000, To: 50000, Took: 0.5, Slope: slope, Shown: true}}),
			[]string{"a, put: 200 (100–300) ms per 1,000 objects, from 1,000 to 50,000 objects; median 500 ms (10 ms)"}},
		"objects that are faster": {ObjectsSlope([]Filling{{Name: "a, put", From: 1, To: 2, Took: 1, Slope: Value{-0.2, -0.3, -0.1, 9}, Shown: true}}),
			[]string{"a, put: -200 (-300–-100) ms per 1,000 objects"}},
		"cut": {ObjectsSlope([]Filling{{Name: "a, put", Where: "10 ms", Known: 1, Cut: 2}, {Name: "b, get", Cut: 1, Slope: Value{math.NaN(), math.NaN(), math.NaN(), 0}}}),
			[]string{"a, put: 2 trials left out, 1 other is in the slope (10 ms)", "b, get: 1 trial left out"}},
	} {
		if len(c.all) != 1 || !slices.EqualFunc(c.all[0].Evidence, c.evidence, begins) {
			t.Errorf("%s: %+v, want %q", name, c.all, c.evidence)
		}
	}
}
