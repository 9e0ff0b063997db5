package report

import (
	"fmt"

	"github.com/plimsoll-project/plimsoll/record"
)

// searched reports whether the run walked its knobs instead of executing all
// combinations.
func (r *Report) searched() bool { return r.walks != nil }

// readWalks takes the searches of a run. One that is at its end has executed what it
// was to execute, however many combinations the plan has.
func (r *Report) readWalks(in *input) { r.walks = in.searches }

// walked sets what was to be executed to what the searches asked for, once all are
// at their end.
func (r *Report) walked() {
	for _, w := range r.walks {
		if w.Ended == "" {
			return
		}
	}
	if r.searched() {
		r.Run.Planned = r.Run.Done + r.Run.Skipped
	}
}

// levelWords names the level of a factor, by its path.
func (r *Report) levelWords(path, value string) string {
	for i := range r.factors {
		f := &r.factors[i]
		for l := range f.Levels {
			if f.Path == path && f.Levels[l].Value == value {
				return f.words(l)
			}
		}
	}
	return path + " " + value
}

// cellByID is a cell; nil: there is none.
func (r *Report) cellByID(id string) *Cell {
	for _, c := range r.cells() {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// walkTable is the path that a search took: its races.
func (r *Report) walkTable() Table {
	t := Table{Head: []Column{{"system", false}, {"pass", true}, {"tried", false}, {"against", false}, {"pairs", true}, {"ratio", true}, {"low", true}, {"high", true}, {"it is", false}, {"why", false}}}
	for _, w := range r.walks {
		for _, x := range w.Races {
			known := func(v float64) Num {
				if v <= 0 {
					return unknown
				}
				return Num(v)
			}
			result := Entry{Text: x.Result, Raw: x.Result}
			if x.Result == record.RaceFaster {
				result.Tone = Good
			}
			t.Rows = append(t.Rows, []Entry{{Text: w.System, Raw: w.System}, integer(x.Pass), {Text: r.levelWords(x.Factor, x.To), Raw: x.To}, {Text: r.levelWords(x.Factor, x.From), Raw: x.From}, integer(x.Pairs),
				number(known(x.Ratio), "×"), number(known(x.Lo), "×"), number(known(x.Hi), "×"), result, {Text: x.Why, Raw: x.Why}})
		}
	}
	return t
}

// searchTrust: how far a search is to be believed.
func searchTrust(r *Report) []Finding {
	if !r.searched() {
		return nil
	}
	f := Finding{Rule: "search", Tone: Warn, Title: "The best was searched for, not all was tried",
		Text: "The search changes one knob at a time from where it stands and keeps what races faster. It finds the best where knobs help independently; a pair that helps only together it may miss, and each race errs now and then. Effects and interactions rest on the combinations that it visited, and it is said where these do not tell them apart."}
	tried, planned := 0, 0
	for _, c := range r.cells() {
		planned++
		if c.Valid > 0 {
			tried++
		}
	}
	f.Evidence = []string{fmt.Sprintf("%d of %s were tried, in %s", tried, plural(int64(planned), "combination", "combinations"), plural(int64(r.Run.Valid), "valid trial", "valid trials"))}
	for _, w := range r.walks {
		at := w.Best
		if c := r.cellByID(w.Best); c != nil {
			at = r.configured(c)
		}
		won, open := 0, 0
		for _, x := range w.Races {
			switch x.Result {
			case record.RaceFaster:
				won++
			case record.RaceOpen:
				open++
			}
		}
		words := fmt.Sprintf("%s: %s, %d won; it stands at %s, after %s of %s", w.System, plural(int64(len(w.Races)), "race", "races"), won, at, span(w.Spent), span(w.Budget))
		switch {
		case w.Ended == record.SearchBudget:
			words += "; the budget ended it, so what it had not tried yet may be better"
		case w.Ended == "":
			words += "; it is not at its end"
		case open > 0:
			words += fmt.Sprintf("; %s not decided", plural(int64(open), "race is", "races are"))
		}
		f.Evidence = append(f.Evidence, words)
	}
	return []Finding{f}
}
