package report

import (
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
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
	s := findings.Searched{Trials: r.Run.Valid}
	for _, c := range r.cells() {
		s.Planned++
		if c.Valid > 0 {
			s.Tried++
		}
	}
	for _, w := range r.walks {
		x := findings.Walk{System: w.System, Best: w.Best, Races: len(w.Races), Spent: span(w.Spent), Budget: span(w.Budget), Ended: w.Ended}
		if c := r.cellByID(w.Best); c != nil {
			x.Best = r.configured(c)
		}
		for _, race := range w.Races {
			switch race.Result {
			case record.RaceFaster:
				x.Won++
			case record.RaceOpen:
				x.Open++
			}
		}
		s.Walks = append(s.Walks, x)
	}
	return findings.SearchTrust(s)
}
