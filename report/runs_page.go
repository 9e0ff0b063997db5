package report

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

// comparisonPage is what the comparison's template sees.
type comparisonPage struct {
	C            *RunComparison
	Experiment   string // its title
	Title        string
	Question     string
	Verdict      Verdict
	Answers      []Answer
	Runs         []Pair
	Differs      []string
	Missing      []string
	Hero         *Figure
	Figures      []Figure
	Over         Table
	Cells        []foldedTable
	Only, Unlike Table
	Gates        gatesData
	Notes        []string
	Data         template.JS
	pageAssets
}

// foldedTable is a table of the page, open or behind its title.
type foldedTable struct {
	Title, Better string
	Open          bool
	Table         Table
}

// WriteHTML writes the comparison as one page, complete like that of a run.
func (c *RunComparison) WriteHTML(w io.Writer) error {
	t, err := c.base.pageTemplate()
	if err != nil {
		return err
	}
	d, err := c.page()
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, "compare.html", d)
}

func (c *RunComparison) page() (comparisonPage, error) {
	own, err := ownAssets(false)
	if err != nil {
		return comparisonPage{}, err
	}
	d := comparisonPage{C: c, Experiment: c.base.Title, pageAssets: own,
		Verdict: c.verdict(), Answers: c.answers(), Differs: c.differLines(), Missing: c.missing(),
		Over: c.overTable().page(), Gates: gatesOf(c.Gates), Notes: c.closing(), Only: c.onlyTable(), Unlike: c.unlikeTable()}
	d.Title = strings.TrimPrefix(c.base.Title+": "+c.Base.Dir, ": ") + " → " + list(c.names())
	d.Question = "What changed from " + c.Base.Dir + " to " + list(c.names()) + "?"
	for i, line := range c.runLines() {
		role := "Base"
		if i > 0 {
			role = capital(c.newHead(i - 1))
		}
		_, said, _ := strings.Cut(line, ":")
		d.Runs = append(d.Runs, Pair{role, strings.TrimSpace(said)})
	}
	m, _ := c.base.metric(c.Headline)
	figures := []Figure{}
	if hero := c.forest("hero", []record.Metric{m}, heroRows); len(hero.Panels) > 0 {
		d.Hero = &hero
		figures = append(figures, hero)
	}
	for _, f := range []Figure{c.overForest(), c.forest("cells", c.Metrics, 0)} {
		if len(f.Panels) > 0 {
			d.Figures = append(d.Figures, f)
		}
	}
	for _, m := range c.Metrics {
		if t := c.cellTable(m); len(t.rows) > 0 {
			d.Cells = append(d.Cells, foldedTable{capital(m.Name) + " (" + m.Key + ")", better(m.Better) + c.partly(m), m.Key == c.Headline, t.page()})
		}
	}
	data, err := figuresData(append(figures, d.Figures...))
	if err != nil {
		return d, fmt.Errorf("report: figures of the comparison: %w", err)
	}
	d.Data = template.JS(data)
	return d, nil
}

// names are the new runs.
func (c *RunComparison) names() []string {
	var names []string
	for _, r := range c.New {
		names = append(names, r.Dir)
	}
	return names
}

// verdict is the sentence with the ratio over all cells behind it.
func (c *RunComparison) verdict() Verdict {
	v := Verdict{Text: c.Sentence() + ".", Tone: Neutral}
	better, worse := 0, 0
	for _, o := range c.Overall {
		if o.Metric != c.Headline {
			continue
		}
		better, worse = better+o.Better+max(0, o.Worth), worse+o.Worse+max(0, -o.Worth)
		if o.Cells > 1 && o.Value.Known() {
			who := ""
			if len(c.New) > 1 {
				who = o.New + ", "
			}
			v.Text += fmt.Sprintf(" %s: %s %s.", capital(who+"over all cells"), ratioWords(o.Value, o.Shown, o.Worth), intervalWords(o.Lo, o.Hi))
		}
	}
	switch {
	case len(c.Cells) == 0:
		v = Verdict{"No cell is the same in both runs: nothing can be compared.", Warn}
	case better > 0 && worse > 0:
		v.Tone = Warn
	case worse > 0:
		v.Tone = Bad
	case better > 0:
		v.Tone = Good
	}
	return v.holding(c.Gates)
}

// answers are the other metrics over all cells, those that changed.
func (c *RunComparison) answers() []Answer {
	var all []Answer
	for _, o := range c.Overall {
		m, _ := c.base.metric(o.Metric)
		if o.Metric == c.Headline || o.Better+o.Worse+o.Spread == 0 && o.Worth == 0 {
			continue
		}
		var words []string
		for _, n := range []struct {
			n    int
			what string
		}{{o.Better, "better"}, {o.Worse, "worse"}, {o.Spread, "with another spread"}} {
			if n.n > 0 {
				words = append(words, fmt.Sprintf("%s in %s", n.what, plural(int64(n.n), "cell", "cells")))
			}
		}
		text := list(words)
		if o.Value.Known() {
			if text != "" {
				text += "; "
			}
			text += "over all cells " + ratioWords(o.Value, o.Shown, o.Worth) + " " + intervalWords(o.Lo, o.Hi)
		}
		name := capital(m.Name)
		if len(c.New) > 1 {
			name += ", " + o.New
		}
		all = append(all, Answer{name, text})
	}
	return all
}

// page is the table as the page shows it; what stands close to the column before
// it is its note.
func (t textTable) page() Table {
	var p Table
	var at []int // the column of the page
	for col, head := range t.head {
		used := slices.ContainsFunc(t.rows, func(row []string) bool { return row[col] != "" })
		switch {
		case head == "" && len(p.Head) > 0:
			at = append(at, -len(p.Head))
		case !used:
			at = append(at, 0)
		default:
			p.Head = append(p.Head, Column{head, t.right[col]})
			at = append(at, len(p.Head))
		}
	}
	for _, row := range t.rows {
		line := make([]Entry, len(p.Head))
		for col, text := range row {
			switch {
			case at[col] > 0:
				line[at[col]-1] = Entry{Text: text, Raw: text, Tone: changeTone(text)}
			case at[col] < 0:
				line[-at[col]-1].Note = text
			}
		}
		p.Rows = append(p.Rows, line)
	}
	return p
}

// changeTone colours what is said to be better, worse or not shown.
func changeTone(text string) Tone {
	switch {
	case strings.HasSuffix(text, "better"):
		return Good
	case strings.HasSuffix(text, "worse"), text == cutOffWords:
		return Bad
	case strings.HasPrefix(text, "~"):
		return Neutral
	}
	return ""
}

func (c *RunComparison) onlyTable() Table {
	t := Table{Head: []Column{{"cell", false}, {"system", false}, {"in", false}, {"not in", false}}}
	for _, o := range c.Only {
		t.Rows = append(t.Rows, []Entry{{Text: o.Where}, {Text: o.System}, {Text: o.In}, {Text: o.NotIn}})
	}
	return t
}

func (c *RunComparison) unlikeTable() Table {
	t := Table{Head: []Column{{"cell", false}, {"system", false}, {"new run", false}, {"settings, base → new", false}, {"compared", false}}}
	for _, u := range c.Unlike {
		var words []string
		for _, s := range u.Settings {
			words = append(words, Difference{Kind: s.Path, Base: settingWords(s.Path, s.Base), New: []string{settingWords(s.Path, s.New)}}.words())
		}
		t.Rows = append(t.Rows, []Entry{{Text: u.Where}, {Text: u.System}, {Text: u.New}, {Text: strings.Join(words, "; ")}, {Text: map[bool]string{true: "yes, as asked", false: "no"}[u.Compared]}})
	}
	return t
}
