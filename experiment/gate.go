package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// gateNames are what rules over these cells may speak of, without the metrics.
func (e *Experiment) gateNames(cells []Cell) gate.Names {
	names := gate.Names{Base: true, Gone: e.Dropped}
	for _, c := range cells {
		levels := map[string]string{}
		for _, f := range c.Factors {
			levels[f.Path] = f.Value
		}
		names.AddCell(levels)
	}
	return names
}

// gates checks the rules of the file over the cells of the plan.
func (d *decoder) gates(e *Experiment, cells []Cell) {
	names := e.gateNames(cells)
	if d.known.Metrics != nil {
		names.Metrics = d.known.Metrics(e.Scenario)
	}
	for i, src := range e.Gates {
		if _, err := gate.Parse(src, names, 0); err != nil {
			d.expression("gates", i, src, err)
		}
		e.Gates[i] = strings.Join(strings.Fields(src), " ")
	}
}

// expression fails with what is wrong in a text of a list.
func (d *decoder) expression(list string, i int, src string, err error) {
	wrong := err.(*gate.Error)
	path := fmt.Sprintf("%s[%d]", list, i)
	n := *d.at[path]
	if n.inner >= 0 && n.verbatim(src) {
		n.column += n.inner + wrong.At - 1
		n.width = wrong.Width
	}
	d.fail(path, &n, wrong.Fix, "`%s`: %s", list, wrong.Msg)
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

// gateWarnings say which rules of the plan its trials cannot decide.
func (p *Plan) gateWarnings() []string {
	names, success := p.Experiment.gateNames(p.Cells), []string{"success", "success_rate", "ok_rate"}
	var undecided []string
	for _, src := range p.Experiment.Gates {
		rule, err := gate.Parse(src, names, 0)
		// A share of operations is decided by their number, not by that of the trials.
		if err == nil && p.Blocks < gate.FewestTrials && !(rule.Kind == gate.Limit &&
			slices.Contains(success, rule.Metric)) {
			undecided = append(undecided, "`"+rule.Text+"`")
		}
	}
	if len(undecided) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("with %s nothing can be decided of %s: the interval of a median, by which a gate is "+
		"decided, needs %d valid trials of each cell; set repetitions to %[3]d or more",
		plural(p.Blocks, "repetition"), strings.Join(undecided, ", "), gate.FewestTrials)}
}
