package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// gateNames are what rules may speak of, without the metrics.
func (e *Experiment) gateNames(cells []Cell) gate.Names {
	names := gate.Names{Levels: map[string][]string{}, Base: true}
	for _, s := range e.Systems {
		names.Levels[systemPath] = append(names.Levels[systemPath], s.Name)
	}
	for _, name := range e.dropped {
		if !slices.Contains(names.Levels[systemPath], name) { // taken out and not put back
			names.Gone = append(names.Gone, name)
		}
	}
	names.Levels[systemPath] = append(names.Levels[systemPath], names.Gone...)
	for _, c := range cells {
		levels := map[string]string{}
		for _, f := range c.Factors {
			names.AddLevel(f.Path, f.Value)
			levels[f.Path] = f.Value
		}
		names.Cells = append(names.Cells, levels)
	}
	return names
}

// gates checks the rules of the file. Cells are those of the plan, nil where a
// mistake elsewhere keeps them from being known: then rules may name any factor.
func (d *decoder) gates(e *Experiment, cells []Cell) {
	if !d.ok("gates") {
		return
	}
	names := e.gateNames(cells)
	names.Open = cells == nil
	if d.known.Metrics != nil && e.Scenario != "" {
		names.Metrics = d.known.Metrics(e.Scenario)
	}
	if cells != nil {
		names.Fixed = e.fixed(names.Levels)
	}
	first := map[string]int{}
	for i, src := range e.Gates {
		rule, err := gate.Parse(src, names, 0)
		if err == nil {
			e.Gates[i] = strings.Join(strings.Fields(src), " ")
			meaning := e.Gates[i]
			if names.Metrics != nil { // else the units of values are not known
				rule.Text = ""
				meaning = fmt.Sprintf("%+v", rule)
			}
			if k, twice := first[meaning]; twice {
				p := fmt.Sprintf("gates[%d]", i)
				d.fail(p, d.at[p], "take it away", "`gates`: the same rule as number %d", k+1)
			} else {
				first[meaning] = i
			}
			continue
		}
		d.expression(e, "gates", i, src, err)
	}
}

// fixed are the levels of what could be a factor and does not vary.
func (e *Experiment) fixed(factors map[string][]string) map[string]string {
	fixed := map[string]string{}
	for _, a := range e.axes() {
		if factors[a.path] == nil && a.values.Len() == 1 {
			fixed[a.path] = a.field.text(a.values.Index(0))
		}
	}
	return fixed
}

// skip refuses preconditions that there are not.
func (d *decoder) skip(e *Experiment) {
	known := d.known.Preconditions
	if known == nil || !d.ok("skip") {
		return
	}
	for i, name := range e.Skip {
		if !slices.Contains(known, name) {
			p := fmt.Sprintf("skip[%d]", i)
			d.fail(p, d.at[p], suggest.OrAll(name, known), "`skip`: there is no precondition %q", name)
		}
	}
}
