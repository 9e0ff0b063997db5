package experiment

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// refuse reports a mistake between values that are each valid, if wrong.
func (d *decoder) refuse(wrong bool, path, hint, format string, args ...any) {
	if wrong {
		d.fail(path, hint, format, args...)
	}
}

// check finds mistakes between values.
func (d *decoder) check(e *Experiment) {
	d.refuse(!e.section().IsValid(), "scenario", "write `"+e.Scenario+":` and its settings below it",
		"missing section `%s`", e.Scenario)
	d.suits(e)
	d.baseline(e)
	d.data(e)
	walk(reflect.TypeFor[Experiment](), "", func(path string, f field) {
		if f.below == "" || d.at[path] == nil || d.at[f.below] == nil {
			return
		}
		inner, outer := cellField(reflect.ValueOf(e), path), cellField(reflect.ValueOf(e), f.below)
		d.refuse(number(outer) > 0 && number(inner) > number(outer), path, "make it shorter, or `"+f.below+"` longer",
			"`%s` (%v) is longer than `%s` (%v)", path, inner, f.below, outer)
	})
	for i, name := range e.Skip {
		known := d.known.Preconditions
		d.refuse(known != nil && !slices.Contains(known, name), fmt.Sprintf("skip[%d]", i), suggest.DidYouMean(name, known),
			"`skip`: there is no precondition %q", name)
	}
	if s := e.Disseminate; s != nil {
		d.refuse(s.SeederSets > e.Repetitions.Max, "disseminate.seeder_sets", "repeat more often, or write 0",
			"%d seeder sets are more than the repetitions", s.SeederSets)
	}
	if e.Retrieve != nil {
		d.retrieve(e.Retrieve)
	}
}

// combined refuses keys that are for other scenarios, or that exclude each other.
func (d *decoder) combined(e *Experiment) {
	refused := "-"
	walk(reflect.TypeFor[Experiment](), "", func(path string, f field) {
		if d.at[path] == nil || strings.HasPrefix(path, refused+".") {
			return
		}
		failed := len(d.errs)
		d.refuse(f.scenarios != nil && e.Scenario != "" && !slices.Contains(f.scenarios, e.Scenario), path,
			"take it away, or change `scenario`", "`%s` is for the scenario %s only", path,
			strings.Join(f.scenarios, " or "))
		for _, other := range f.without {
			d.refuse(d.at[other] != nil, path, "take one of them away", "`%s` has no meaning with `%s`", path, other)
		}
		if len(d.errs) > failed {
			refused = path
		}
	})
}

func (d *decoder) baseline(e *Experiment) {
	names, first := append(e.SystemNames(), "none"), "none" // the first raw baseline
	if i := slices.IndexFunc(e.Systems, func(s SystemUse) bool { return d.cat.find(s.Use).Baseline }); i >= 0 {
		first = names[i]
	}
	if n := d.at["baseline"]; e.Baseline == "" || n.line > 0 && slices.Contains(d.dropped, e.Baseline) {
		e.Baseline = first // in the second case, --set removed the file's baseline
	}
	d.refuse(!slices.Contains(names, e.Baseline), "baseline", suggest.DidYouMean(e.Baseline, names),
		"the baseline `%s` is not one of the systems", e.Baseline)
	for i := range e.Systems {
		e.Systems[i].Baseline = e.Systems[i].Name == e.Baseline
	}
}

// data requires a data set if a system starts empty or the scenario stores one, and the permission
// to store it in attached systems.
func (d *decoder) data(e *Experiment) {
	attached := slices.IndexFunc(e.Systems, SystemUse.Attached)
	started := slices.ContainsFunc(e.Systems, func(s SystemUse) bool { return !s.Attached() })
	stores := e.Scenario == "upload" || e.Retrieve != nil && e.Retrieve.Mix != nil
	own := e.Scenario == "collect" || e.Scenario == "sync" || e.Retrieve.Replays() != nil ||
		e.Scenario == "retrieve" && !started && d.at["data"] == nil
	path := "data"
	if d.at[path] == nil {
		path = e.Scenario
	}
	d.refuse(!own && !e.Data.Given(), path, "such as `data: {size: 64MiB}`", "missing key `data.size`")
	if !e.Data.Known() {
		e.Data.Objects = 0
	}
	d.refuse(stores && attached >= 0 && !e.Allows("write"), fmt.Sprintf("systems[%d]", attached),
		"write `allow: [write]`, and spend for systems that are paid", "objects would be stored in an attached system")
}

// retrieve requires an end of each trial, and the keys for the arrival process.
func (d *decoder) retrieve(r *Retrieve) {
	a := r.Arrivals
	ended := r.Requests != 0 || r.Bytes != 0 || r.Duration != 0 || r.PerWorker != 0 || r.Replays() != nil ||
		a != nil && a.Process == "steps"
	d.refuse(!ended, "retrieve", "give one of requests, bytes, duration, per_worker", "nothing ends a trial")
	if a == nil {
		return
	}
	r.Concurrency = 0 // requests do not wait for workers
	if a.Process == "log" && a.Speed == 0 {
		a.Speed = 1
	}
	wants := "rate"
	if a.Process == "steps" || a.Process == "log" {
		wants = a.Process
	}
	for _, key := range []string{"rate", "steps", "log"} {
		path := "retrieve.arrivals." + key
		d.refuse(key == wants && d.at[path] == nil, path, "", "missing key `%s` for the process %s", path, a.Process)
		d.refuse(key != wants && d.at[path] != nil, path, "", "`%s` has no meaning for the process %s", path, a.Process)
	}
}

// cells expands the experiment, and checks its conditions and rules against the cells.
func (d *decoder) cells(e *Experiment) {
	cells, bad := e.expand()
	if bad == nil {
		bad = d.gates(e, cells)
	}
	seen := map[string]bool{}
	for _, b := range bad { // report each level that makes cells impossible once
		if !seen[b.path] {
			seen[b.path] = true
			d.fail(b.path, b.Hint, "%s", b.Message)
		}
	}
}

// gates checks the rules against the cells.
func (d *decoder) gates(e *Experiment, cells []Cell) (bad Errors) {
	names := e.GateNames(cells)
	if d.known.Metrics != nil {
		names.Metrics = d.known.Metrics(e.Scenario)
	}
	for i, src := range e.Gates {
		_, err := gate.Parse(src, names, 0)
		bad = append(bad, expression("gates", i, err)...)
		e.Gates[i] = strings.Join(strings.Fields(src), " ")
	}
	return bad
}

// GateNames returns the names that rules for these cells may use, without the metrics, as if there were a base run.
func (e *Experiment) GateNames(cells []Cell) gate.Names {
	names := gate.Names{Base: true, Dropped: e.Dropped}
	for _, c := range cells {
		levels := map[string]string{}
		for _, f := range c.Factors {
			levels[f.Path] = f.Value
		}
		names.Cells = append(names.Cells, levels)
	}
	return names
}
