package report

import (
	"fmt"
	"strings"
)

// syncStudy is what the tuning report of Sia's chain sync published. Of its steps
// only what is said there has a figure.
var syncStudy = []struct {
	what   string
	factor string // part of the factor's path
	value  string // part of the level's value; empty: any that is not the default
	then   string
}{
	{"shorter timeouts", "timeout", "", "10 s; in the total only"},
	{"consensus.db on a RAM disk", storagePath, "ram", "in the total only"},
	{"consensus and gateway alone: no subscribers", "subscri", "", "55 minutes, 18 % of the time"},
}

// studyTotal is what all of it bought.
const studyTotal = -0.76

// followsStudy reports whether the run is that of the preset that follows the study.
func (r *Report) followsStudy() bool {
	for _, where := range []string{r.EnvironmentOf("command"), r.EnvironmentOf("experiment"), r.Title, r.Description} {
		if strings.Contains(where, "sia-sync") {
			return true
		}
	}
	return false
}

// studyStep is one step of the study in a tuning: the factor and its level; false:
// it is not there.
func (t *Tuning) studyStep(factor, value string) (f, level int, ok bool) {
	for i := range t.factors {
		x := &t.factors[i]
		if !strings.Contains(x.Path, factor) {
			continue
		}
		if t.best != nil {
			if l := x.level(t.best); l > 0 && strings.Contains(x.Levels[l].Value, value) {
				return i, l, true
			}
		}
		for l := 1; l < len(x.Levels); l++ {
			if strings.Contains(x.Levels[l].Value, value) {
				return i, l, true
			}
		}
	}
	return 0, 0, false
}

// ladder are the study's three steps in its order, one on top of the other, as
// combinations of a tuning; shorter when a step or its combination is not there.
func (t *Tuning) ladder() (cells []*Synced, names []string) {
	if t.base == nil {
		return nil, nil
	}
	levels := make([]int, len(t.factors))
	cells, names = append(cells, t.cellAt(levels)), append(names, "default")
	for _, s := range syncStudy {
		f, l, ok := t.studyStep(s.factor, s.value)
		if !ok {
			break
		}
		levels[f] = l
		c := t.cellAt(levels)
		if c == nil {
			break
		}
		cells, names = append(cells, c), append(names, "+ "+s.what)
	}
	return cells, names
}

// syncStudySection holds the published figures beside those of this run. They are of
// another code, network and decade.
func (r *Report) syncStudySection() Section {
	s := Section{ID: "study", Title: "Then and now",
		Words: "The first column is what the tuning report of Sia's chain sync published: siad of its day, the public chain and peers, one run each, changes on top of each other. The second is this run: a generated chain, its own links, today's consensus code. Compare their kind, not their size; a step here is the ratio to the step before it, over trials of the same blocks.",
		Table: Table{Head: []Column{{"what", false}, {"then", false}, {"here", false}}}}
	if !r.followsStudy() {
		return s
	}
	for _, t := range r.tunings() {
		cells, names := t.ladder()
		for i := 1; i < len(cells); i++ {
			xs, ys, _ := paired(cells[i].cell.Metrics[r.headline], cells[i-1].cell.Metrics[r.headline])
			here := Entry{Text: "–", Note: "no pair of trials"}
			if len(xs) > 0 {
				q := geometric(xs, ys)
				here = Entry{Text: q.gainWords(), Raw: Plain(float64(q.Value)), Note: q.Warn}
			}
			s.Table.Rows = append(s.Table.Rows, []Entry{{Text: r.at(t, strings.TrimPrefix(names[i], "+ "))}, {Text: syncStudy[i-1].then}, here})
		}
		if len(cells) == len(syncStudy)+1 {
			if q, ok := cells[len(cells)-1].cell.Ratios[r.headline]; ok {
				s.Table.Rows = append(s.Table.Rows, []Entry{{Text: r.at(t, "all three together")}, {Text: fmt.Sprintf("%s %%", signed(1+studyTotal))}, {Text: q.gainWords(), Raw: Plain(float64(q.Value)), Note: q.Warn}})
			}
		}
	}
	return s
}

// gainWords is a ratio as a gain, with "~" when nothing is shown.
func (q Ratio) gainWords() string { return q.found().Words() }
