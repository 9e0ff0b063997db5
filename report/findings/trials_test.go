package findings

import (
	"math"
	"slices"
	"testing"
)

// What a run's trials came to, with the words that say it.
func TestWhatIsSaidOfARunsTrials(t *testing.T) {
	for name, c := range map[string]struct {
		all         []Finding
		title, text string // as they begin
		evidence    []string
	}{
		"wrong bytes": {WrongBytes([]Corrupt{{"a", "1 MB", 4, 2}, {"b", "1 MB", 5, 0}, {"a", "2 MB", 7, 1}}),
			"Wrong bytes were served", "3 operations delivered all bytes", []string{"a, 1 MB, trial 4: 2 operations", "a, 2 MB, trial 7: 1 operation"}},
		"wrong chains": {WrongChains([]Corrupt{{"a", "1 peer", 4, 1}}),
			"Another chain at the right height", "1 operation came to the height", []string{"a, 1 peer, trial 4: 1 operation"}},
		"not executed": {NotExecuted([]Unexecuted{{"a", "no room"}, {"b", "no room"}, {"a", "no room"}}),
			"Trials could not be executed", "These trials", []string{"a, 2 trials: no room", "b, 1 trial: no room"}},
		"not emulated": {NotEmulated(Links{Asked: "1 Gbit/s", Bare: 2}),
			"Links were not emulated", "The plan asks for 1 Gbit/s; 2 trials of this machine had no such link (this machine has no emulator).", nil},
		"link off": {LinkOff([]Spoiled{{"a", 1, 5}, {"b", 0, 5}, {"c", 2, 5}}, false),
			"A link was not what was asked for", "3 trials: the link measured", []string{"a: 1 trial of 5", "c: 2 trials of 5"}},
		"emulator late": {LinkOff([]Spoiled{{"a", 1, 5}}, true),
			"The links' emulator was late or ended", "1 trial: the links' emulator forwarded packets too late", []string{"a: 1 trial of 5"}},
		"deadlines": {Deadlines([]Outcomes{{"a", 80, 85, 12, 3, 100, "refused ×5"}}),
			"Deadlines, not failures", "Operations passed", []string{"a: of 100 operations 12 passed the deadline and 3 were starved by the link; the server failed 5. Counted together they would read as 80 % success"}},
		"failures": {Failures([]Outcomes{{"a", 80, 85, 12, 3, 100, "refused ×5"}}),
			"Operations failed", "The server", []string{"a: 5 of 85 (5.9 %): refused ×5"}},
		"short": {ShortTrials([]Looped{{"a", 30, 4}, {"not cut", 3, 0}}),
			"Trials are short", "Fewer than ten", []string{"a: 7.5 requests of each connection in a trial"}},
		"overloaded": {Overloaded([]Offered{{"a", 0.39}, {"at the limit", KeptUp}}),
			"The offered load", "Requests", []string{"a: 39 % of the offered load ended within the trial"}},
		"skipped": {Skipped([]Omitted{{"a", "1 GB", 0, "it takes an hour"}, {"a", "1 MB", 2, "so do these"}}),
			"Cells were left out", "2 cells were left out", []string{"a, 1 GB: it takes an hour", "a, 1 MB, 2 trials: so do these"}},
	} {
		if len(c.all) != 1 || !begins(c.all[0].Title, c.title) || !begins(c.all[0].Text, c.text) || !slices.Equal(c.all[0].Evidence, c.evidence) {
			t.Errorf("%s: %+v", name, c.all)
		}
	}
	if f := Overloaded([]Offered{{"not known", math.NaN()}}); f != nil {
		t.Errorf("%+v", f)
	}
	for _, f := range [][]Finding{WrongBytes(nil), NotExecuted(nil), Skipped(nil), Failures(nil), Deadlines(nil)} {
		if f != nil {
			t.Errorf("of nothing: %+v", f)
		}
	}
}

func begins(s, with string) bool { return len(s) >= len(with) && s[:len(with)] == with }
