package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// gates checks the rules of the file. Cells are those of the plan, nil where a
// mistake elsewhere keeps them from being known: then rules may name any factor.
func (d *decoder) gates(e *Experiment, cells []Cell) {
	if !d.ok("gates") {
		return
	}
	names := gate.Names{Levels: map[string][]string{}, Open: cells == nil, Base: true}
	if d.known.Metrics != nil && e.Scenario != "" {
		names.Metrics = d.known.Metrics(e.Scenario)
	}
	for _, s := range e.Systems {
		names.Levels[systemPath] = append(names.Levels[systemPath], s.Name)
	}
	names.Levels[systemPath] = append(names.Levels[systemPath], e.dropped...)
	for _, c := range cells {
		for _, f := range c.Factors {
			names.AddLevel(f.Path, f.Value)
		}
	}
	for i, src := range e.Gates {
		_, err := gate.Parse(src, names, 0)
		if err == nil {
			e.Gates[i] = strings.Join(strings.Fields(src), " ")
			continue
		}
		ge, _ := err.(*gate.Error)
		if !d.ok("systems") && strings.HasPrefix(ge.Msg, "the run has no system") {
			continue // the name is wrong because the system is
		}
		p := fmt.Sprintf("gates[%d]", i)
		n := *d.at[p]
		if n.inner >= 0 && n.verbatim(src) {
			n.column += n.inner + ge.At - 1
			n.width = ge.Width
		}
		d.fail(p, &n, ge.Fix, "`gates`: %s", ge.Msg)
	}
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
