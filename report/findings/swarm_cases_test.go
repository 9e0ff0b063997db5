package findings

import (
	"math"
	"slices"
	"testing"
)

// swarmCases are of the rules that look at swarms.
func swarmCases() map[string]example {
	goals := func(cells []Goal) []Finding { return Goals(cells, "at most 20 % slower than deluge") }
	half := []string{"half of the leechers at 1.1×"}
	crash := func(came, undone int) []Faulted {
		return []Faulted{{"a", []FaultCount{{Fault: "crash seeders at 50% for 10s", Trials: 8, Came: came, Undone: undone, Ends: true}}}}
	}
	return map[string]example{
		"leechers-unfinished":        when(LeechersUnfinished, []Leechers{{Where: "a", Left: 1, Of: 32, In: 1, Trials: 8}}, []Leechers{{Where: "a", Left: 1, Of: 32, In: 1, Trials: 8, Faulted: true}}),
		"leechers-unfinished-faults": when(LeechersUnfinished, []Leechers{{Where: "a", Left: 1, Of: 32, In: 1, Trials: 8, Faulted: true}}, []Leechers{{Where: "a", Of: 32, Trials: 8, Faulted: true}}),
		"goal-missed":                when(goals, []Goal{{Where: "a", Missed: half, Trials: 8}}, []Goal{{Where: "a", Open: half, Trials: 8}}),
		"goal-met-unfinished":        when(goals, []Goal{{Where: "a", Met: half, Trials: 8, Unfinished: 1, Wanted: 32}}, []Goal{{Where: "a", Met: half, Trials: 8, Wanted: 32}}),
		"goal-open":                  when(goals, []Goal{{Where: "a", Open: half, Trials: 8}}, []Goal{{Where: "a", Missed: half, Trials: 8}}),
		"no-sharing":                 when(NoSharing, []Sharing{{"a", 1, 4, 0.97}}, []Sharing{{"a", 1, 4, 0.4}}),
		"disk-lags":                  when(DiskLags, []Written{{"a", 10, 14, 0.1}}, []Written{{"a", 10, 10.5, 0.1}}),
		"slow-recovery":              when(SlowRecovery, []Recovery{{"a", Value{30, 25, 35, 6}, 10, 1}}, []Recovery{{"a", Value{3, 2, 4, 6}, 10, 1}}),
		"start-spread":               when(StartSpread, []Release{{"a", 2, 10}}, []Release{{"a", 0.1, 10}}),
		"coarse":                     when(CoarsePolls, []PollGaps{{"a", 10, 2, []float64{2, 2}}}, []PollGaps{{"a", 10, 0.5, []float64{0.5, 2}}}),
		"imported":                   tells(Imported, Source{Format: "a log", From: []string{"a.log"}, Unknown: []string{"no links"}}, Source{Format: "a log", From: []string{"a.log"}}, "no links"),
		"partial-faults":             when(PartialFaults, crash(7, 6), crash(8, 8)),
	}
}

// What is said of swarms, with its figures.
func TestWhatIsSaidOfSwarms(t *testing.T) {
	nan := math.NaN()
	left := func(least, most float64) []Finding {
		return LeechersUnfinished([]Leechers{{Where: "a", Left: 2, Of: 32, In: 1, Trials: 8, Ends: "stalled ×2", Why: "no further byte ×2", Least: least, Most: most}})
	}
	const stalled = "a: 2 of 32 leechers in 1 of 8 trials: stalled ×2 (no further byte ×2)"
	for name, c := range map[string]struct {
		all      []Finding
		evidence []string
	}{
		"apart":          {left(0.1, 0.97), []string{stalled + "; they had 10 % to 97 %"}},
		"at one point":   {left(0.970, 0.974), []string{stalled + "; each had 97 %"}},
		"without a byte": {left(0, 0), []string{stalled + "; none of them had a byte"}},
		"not known":      {left(nan, nan), []string{stalled}},
		"goal": {Goals([]Goal{{Where: "a", Missed: []string{"half late", "last late"}, Trials: 3}, {Where: "not one trial", Open: []string{"half"}}}, "fast"),
			[]string{"a: half late; last late"}},
		"sharing": {NoSharing([]Sharing{{"a", 2, 4, 0.97}, {"one leecher", 1, 1, 1}, {"not known", 1, 4, nan}, {"at the limit", 1, 4, nearlyAll}}),
			[]string{"a: 97 % of all bytes were sent by 2 seeders"}},
		"disk": {DiskLags([]Written{{"a", 10, 14, 0.1}, {"told by polls", 10, 14, 2}, {"not known", 10, nan, 0.1}}),
			[]string{"a: verified after 10.0 s, on disk after 14.0 s"}},
		"recovery": {SlowRecovery([]Recovery{{"a", Value{30, 25, 35, 6}, 10, 0.5}, {"none is undone", Value{30, 25, 35, 6}, 0, nan}, {"nothing known", Value{nan, nan, nan, 0}, 10, nan}}),
			[]string{"a: 30.0 (25.0–35.0) s to the next verified byte after an outage of 10.0 s and 50 % of the nodes went on at all"}},
		"spread": {StartSpread([]Release{{"a", 2, 10}, {"no time", 2, 0}}),
			[]string{"a: 2.00 s apart, with a median time of 10.0 s"}},
		"coarse": {CoarsePolls([]PollGaps{{"a", 10, 2, nil}, {"b", 10, 0.5, []float64{0.5, 3, 2.5}}, {"no time", 0, 2, nil}}),
			[]string{"a: polls up to 2.00 s apart, with a median time of 10.0 s", "b: in 1 of 3 trials nobody was asked for up to 3.00 s, with a median time of 10.0 s"}},
		"imported": {Imported(Source{Format: "a log", From: []string{"a", "b"}, Unknown: []string{"links"}, Notes: []string{"one was short"}}),
			[]string{"links", "one was short"}},
		"faults": {PartialFaults([]Faulted{{"a", []FaultCount{{"crash", 8, 7, 6, true}, {"slow", 8, 8, 0, false}}}, {"no trials", []FaultCount{{"crash", 0, 0, 0, true}}}}),
			[]string{"a: “crash” came in 7 of 8 trials, undone before the end in 6"}},
	} {
		if len(c.all) != 1 || !slices.Equal(c.all[0].Evidence, c.evidence) {
			t.Errorf("%s: %+v, want %q", name, c.all, c.evidence)
		}
	}
}
