package experiment

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/internal/words"
)

const (
	textWidth = 80 // columns of the narrowest usual terminal
	textCells = 24 // cells in the table at most
)

// Text returns the plan as text, at most 80 columns wide.
func (p *Plan) Text() string {
	t := &textPage{}
	e := &p.Experiment
	t.wrap("", cmp.Or(e.Title, e.Scenario), e.Question)
	t.WriteString("\n")
	t.wrap("systems", strings.Join(each(e.Systems, SystemUse.text), ", "))
	for _, key := range []string{"link", "data", e.Scenario, "limits", "exit"} {
		t.wrap(key, e.settings(key))
	}
	if a := e.Retrieve.Replays(); a != nil && a.Found != nil {
		t.wrap("log", a.Found.Text())
	}
	t.wrap("trials", fmt.Sprintf("%d = %s × (%s + %s), blocks shuffled by seed %d",
		p.Estimate.Trials, plural(len(p.Cells), "cell"), plural(p.Warmup, "warm-up"), plural(p.Blocks, "repetition"),
		e.Seed))
	t.wrap("estimate", p.EstimateText())
	t.wrap("where", e.Where...)
	t.wrap("gate", e.Gates...)
	t.wrap("plan", p.Hash)
	t.WriteString("\n")
	t.cells(p)
	for _, warning := range p.Warnings() {
		t.WriteString("\n")
		t.wrap("warning", warning)
	}
	return t.String()
}

// settings formats the keys of a section that differ from their defaults or are factors.
func (e *Experiment) settings(section string) string {
	var parts []string
	values(reflect.ValueOf(e), func(path string, f field, v reflect.Value) {
		key, inside := strings.CutPrefix(path, section+".")
		if inside && path == varyPath {
			for _, name := range sortedKeys(e.Sync.Vary) {
				parts = append(parts, name+" "+strings.Join(e.Sync.Vary[name].values(), " / "))
			}
		} else if inside {
			if text := e.setting(path, f, v); text != "" && text != f.def {
				parts = append(parts, key+" "+text)
			}
		}
	})
	return strings.Join(parts, ", ")
}

// values calls do for each key of the format that in has. A value with a text of its own replaces all keys in it.
func values(in reflect.Value, do func(path string, f field, v reflect.Value)) {
	whole := "-" // path of such a value
	walk(reflect.TypeFor[Experiment](), "", func(path string, f field) {
		v := cellField(in, path)
		if !v.IsValid() || strings.HasPrefix(path, whole+".") {
			return
		}
		if _, words := v.Interface().(fmt.Stringer); f.section() == nil || f.list() || words {
			whole = path
			do(path, f, v)
		}
	})
}

// Settings returns the link, data and scenario of a cell by key, as written in a file.
func (c Cell) Settings() map[string]string {
	all := map[string]string{}
	values(reflect.ValueOf(c), func(path string, f field, v reflect.Value) {
		if strings.Contains(path, ".") { // others are not of the file
			all[path] = f.text(v)
		}
	})
	if c.Sync != nil {
		for name, value := range c.Sync.Options {
			all["sync.options."+name] = value
		}
	}
	if a := c.Retrieve.Replays(); a != nil && a.Found != nil {
		all["retrieve.arrivals.found"] = a.Found.SHA256
	}
	return all
}

// setting formats the value of a key, or its levels; empty if it has none.
func (e *Experiment) setting(path string, f field, v reflect.Value) string {
	texts := []string{f.text(v)}
	if f.label != "" {
		texts = each(e.levels(path, f, v), f.text)
	}
	if v.IsZero() && len(texts) < 2 && (f.label != "" || f.def == "") {
		return ""
	}
	return strings.Join(texts, " / ")
}

// text returns the system's name and its particularities.
func (s SystemUse) text() string {
	var about []string
	if s.Name != s.Use {
		about = append(about, s.Use)
	}
	if s.Attached() {
		about = append(about, "attached")
	}
	if s.Baseline {
		about = append(about, "baseline")
	}
	for _, k := range sortedKeys(s.Override) {
		about = append(about, k+" "+s.Override[k])
	}
	if about == nil {
		return s.Name
	}
	return s.Name + " (" + strings.Join(about, ", ") + ")"
}

// textPage collects lines of at most textWidth columns.
type textPage struct{ strings.Builder }

// wrap writes each text after a label, wrapped at spaces. It skips empty texts.
func (t *textPage) wrap(label string, texts ...string) {
	if label != "" {
		label = fmt.Sprintf("%-11s ", label)
	}
	for _, text := range texts {
		if strings.TrimSpace(text) == "" {
			continue
		}
		lines := words.Wrap(label, strings.Repeat(" ", len(label)), text, textWidth)
		t.WriteString(strings.Join(lines, "\n") + "\n")
	}
}

// cells writes the table of the first cells. Columns that may be wide come last.
func (t *textPage) cells(p *Plan) {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(columns ...string) { fmt.Fprintln(w, strings.Join(columns, "\t")) }
	labels := each(p.Cells[0].Factors, func(f Factor) string { return f.Label })
	row("cell", "one trial", p.content(), strings.Join(labels, "\t"))
	for _, c := range p.Cells[:min(len(p.Cells), textCells)] {
		took, moved := c.Estimate.Bound.text(c.Estimate.Seconds, c.Estimate.Bytes)
		levels := each(c.Factors, func(f Factor) string { return f.Value })
		row(c.ID, took, moved, strings.Join(levels, "\t"))
	}
	w.Flush()
	for line := range strings.Lines(b.String()) {
		t.WriteString(words.Clip(strings.TrimRight(line, " \n"), textWidth) + "\n")
	}
	if n := len(p.Cells) - textCells; n > 0 {
		fmt.Fprintf(t, "… %d more (all of them with --json)\n", n)
	}
}

func plural(n int, noun string) string { return words.Plural(int64(n), noun, noun+"s") }

// fewestInterval is the number of trials that an exact 95 % interval of a median needs.
const fewestInterval = 6

// Warnings returns problems to consider before the run.
func (p *Plan) Warnings() []string {
	var warnings, late []string
	for _, c := range p.Cells {
		if c.Estimate.Operation > p.Experiment.Limits.Deadline.Seconds() {
			late = append(late, c.ID)
		}
	}
	if late != nil {
		warnings = append(warnings, fmt.Sprintf("in %s (%s) an operation is expected to take longer than its deadline "+
			"(limits.deadline): most would end as `deadline`, however healthy the server is",
			plural(len(late), "cell"), words.Some(late)))
	}
	if most := p.Experiment.Exit.MaxRuntime; most > 0 && !p.Experiment.LoadTest() && p.Estimate.Seconds > most.Seconds() {
		warnings = append(warnings, fmt.Sprintf("the run is expected to take longer than exit.max_runtime (%s), which "+
			"ends it before its last trial", most))
	}
	r := p.Experiment.Repetitions
	// The effects of sync's factors are estimated over all cells.
	if r.Max > 1 && r.Max < fewestInterval && p.Experiment.Sync == nil {
		warnings = append(warnings, fmt.Sprintf("%s give no 95 %% interval of a median, only the range of the "+
			"trials: %d do (repetitions)", plural(r.Max, "repetition"), fewestInterval))
	}
	switch few := p.Blocks < gate.FewestTrials && p.Experiment.Gates != nil; {
	case few && p.Experiment.LoadTest():
		warnings = append(warnings, fmt.Sprintf("a load test is one trial of each cell, so no gate can be decided: "+
			"it needs %d valid ones", gate.FewestTrials))
	case few:
		warnings = append(warnings, fmt.Sprintf("with %s no gate can be decided: it needs %d valid trials of each "+
			"cell (repetitions)", plural(p.Blocks, "repetition"), gate.FewestTrials))
	}
	return append(warnings, p.Unapplied()...)
}

// Unapplied lists for each attached system the parts of the experiment that do not apply to it.
func (p *Plan) Unapplied() []string {
	e := p.Experiment
	var ignored, texts []string
	varied := func(section string) bool {
		return slices.ContainsFunc(sortedKeys(e.Factors), func(path string) bool {
			return strings.HasPrefix(path, section+".")
		})
	}
	if e.Link.Shaped() || varied("link") {
		ignored = append(ignored, "link is ignored (it has its own network)")
	}
	if (e.Data.Given() || varied("data")) && !e.Allows("write") {
		ignored = append(ignored, "data is ignored (it has its own objects)")
	}
	for _, s := range e.Systems {
		if ignored != nil && s.Attached() && e.Collect == nil {
			texts = append(texts, s.Name+" is attached: "+strings.Join(ignored, "; "))
		}
	}
	return texts
}
