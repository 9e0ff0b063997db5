package experiment

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment/gate"
	"github.com/plimsoll-project/plimsoll/experiment/suggest"
)

// Parse reads an experiment file. name is for messages; set are "key=value"
// arguments that change the file before it is checked. The error, if any, is
// of type [Errors]: every mistake, in the order of the file.
func Parse(name string, src []byte, set []string, cat Catalog) (*Experiment, error) {
	return ParseKnowing(name, src, set, cat, Known{})
}

// Known is what a file may name that is decided outside of its format. What is
// nil is not known, and not checked.
type Known struct {
	Metrics       func(scenario string) []gate.Metric // that a gate may speak of
	Preconditions []string                            // that can be skipped
}

// ParseKnowing is Parse, and refuses names that are none of those known.
func ParseKnowing(name string, src []byte, set []string, cat Catalog, known Known) (*Experiment, error) {
	src = bytes.TrimPrefix(src, []byte("\uFEFF")) // a byte order mark
	d := &decoder{cat: cat, known: known, at: map[string]*node{}, bad: map[string]bool{},
		factors: map[string]json.RawMessage{}}
	file := &source{name: name, lines: sourceLines(src)}
	root, errs := parseYAML(file, src)
	d.errs = append(d.errs, errs...)
	if root != nil {
		file.hideSections(root)
	}
	if root == nil || root.kind == nullNode || root.kind == badNode {
		if errs != nil {
			return nil, d.errs.sorted()
		}
		return nil, Errors{{File: name, Message: "the file is empty",
			Hint: "begin with `scenario: retrieve`; `plimsoll presets` shows complete files"}}
	}
	if root.kind != mappingNode {
		d.section(root, root, reflect.ValueOf(&Experiment{}).Elem(), "")
		return nil, d.errs.sorted()
	}
	d.applySets(root, set)
	e := &Experiment{}
	d.section(root, root, reflect.ValueOf(e).Elem(), "")
	e.Dropped = d.dropped
	if len(d.factors) > 0 {
		e.Factors = d.factors
	}
	d.check(e)
	if len(d.errs) > 0 {
		return nil, d.errs.sorted()
	}
	return e, nil
}

func sourceLines(src []byte) []string {
	text := strings.ToValidUTF8(string(src), "\uFFFD")
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
}

// check finds the mistakes that lie between values, not in one of them.
func (d *decoder) check(e *Experiment) {
	d.loadSection(e)
	d.systems(e)
	d.baseline(e)
	d.misplaced(e)
	d.data(e)
	d.permissions(e)
	d.emulated(e)
	d.limits(e)
	d.repetitions(e)
	d.scenario(e)
	d.skip(e)
	section, _ := e.scenarioSection()
	if !d.ok("systems", varyPath) || !section.IsValid() {
		return // conditions and gates would seem to be wrong for that
	}
	conditions := e.conditions(func(i int, err error) { d.expression("where", i, e.Where[i], err) })
	if len(d.errs) > 0 {
		return
	}
	if cells := d.cellsPossible(e, conditions); len(d.errs) == 0 {
		d.gates(e, cells)
	}
}

// loadSection gives a load test without a section of its own all defaults: each
// key of it has one. The other scenarios need a section in the file.
func (d *decoder) loadSection(e *Experiment) {
	if !e.LoadTest() || d.at[e.Scenario] != nil {
		return
	}
	v := reflect.ValueOf(e).Elem()
	f := tableOf(v.Type()).field(e.Scenario)
	section := reflect.New(f.typ.Elem())
	v.Field(f.index).Set(section)
	for _, key := range tableOf(f.typ.Elem()).fields {
		d.setDefault(section.Elem().Field(key.index), key)
	}
}

func (d *decoder) baseline(e *Experiment) {
	var names []string
	for _, s := range e.Systems {
		names = append(names, s.Name)
	}
	n := d.at["baseline"]
	switch {
	case n == nil, e.Baseline == "", !n.src.set && slices.Contains(d.dropped, e.Baseline):
		// The last: the file's baseline was taken out on the command line.
		e.Baseline = "none"
		for _, s := range e.Systems {
			if spec := d.cat.find(s.Use); spec != nil && spec.Baseline {
				e.Baseline = s.Name
				break
			}
		}
	case e.Baseline == "none" || slices.Contains(names, e.Baseline):
	default:
		if d.ok("systems", "baseline") {
			d.fail("baseline", n, suggest.DidYouMean(e.Baseline, append(names, "none")),
				"the baseline `%s` is not one of the systems", e.Baseline)
		}
	}
	for i := range e.Systems {
		e.Systems[i].Baseline = e.Systems[i].Name == e.Baseline
	}
}

// limits refuses a limit that another one, given too, always comes before.
func (d *decoder) limits(e *Experiment) {
	for _, c := range []struct {
		key, within  string
		inner, outer Duration
	}{
		{"limits.stall", "limits.deadline", e.Limits.Stall, e.Limits.Deadline},
		{"limits.deadline", "limits.trial", e.Limits.Deadline, e.Limits.Trial},
		{"limits.trial", "exit.max_runtime", e.Limits.Trial, e.Exit.MaxRuntime},
	} {
		inner := d.at[c.key]
		if inner != nil && d.at[c.within] != nil && d.ok(c.key, c.within) && c.outer > 0 && c.inner > c.outer {
			d.fail(c.key, inner, "make it shorter, or `"+c.within+"` longer",
				"`%s` (%s) is longer than `%s` (%s), which comes first", c.key, c.inner, c.within, c.outer)
		}
	}
}

// repetitions are once in load tests, where nothing else is said.
func (d *decoder) repetitions(e *Experiment) {
	if e.LoadTest() && d.at["repetitions"] == nil {
		e.Repetitions.Max = 1
	}
	if e.LoadTest() && d.at["warmup"] == nil {
		e.Warmup.Trials = 0
	}
}

func (d *decoder) scenario(e *Experiment) {
	if section, _ := e.scenarioSection(); !section.IsValid() {
		if d.ok("scenario", e.Scenario) && d.at[e.Scenario] == nil && e.Scenario != "" {
			d.fail(e.Scenario, d.first("scenario"), "write `"+e.Scenario+":` and its settings below it",
				"missing section `%s` for the scenario %[1]s", e.Scenario)
		}
		return
	}
	switch e.Scenario {
	case "retrieve":
		d.retrieve(e.Retrieve)
	case "disseminate":
		d.disseminate(e)
	case "sync":
		d.sync(e)
	}
}

// misplaced refuses keys that have a meaning in other scenarios only.
func (d *decoder) misplaced(e *Experiment) {
	if e.Scenario == "" {
		return
	}
	refused := "-"
	walk(reflect.TypeFor[Experiment](), "", func(path string, f field) {
		n := d.at[path]
		if n != nil && f.scenarios != nil && !slices.Contains(f.scenarios, e.Scenario) &&
			!strings.HasPrefix(path, refused+".") {
			refused = path
			d.fail(path, n, "take it away, or change `scenario`", "`%s` is for the scenario %s, not for %s", path,
				strings.Join(f.scenarios, " or "), e.Scenario)
		}
	})
}

// emulated refuses what needs an emulated link where there shall be none.
func (d *decoder) emulated(e *Experiment) {
	if e.Link.Emulator != "none" || !d.ok("link", e.Scenario) {
		return
	}
	for _, a := range e.axes() {
		if n := d.at[a.path]; n != nil && slices.ContainsFunc(a.all(), a.shapes) {
			d.fail(a.path, n, "take the key away, or let the emulator be auto",
				"`%s` needs an emulated link, but `link.emulator` is none", a.path)
		}
	}
}

// shapes reports whether a level of the factor is about emulated links.
func (a axisRef) shapes(v reflect.Value) bool {
	switch level := v.Interface().(type) {
	case Faults:
		return slices.ContainsFunc(level, func(f Fault) bool { return f.Kind() != FaultCrash })
	case Troubles:
		return slices.ContainsFunc(level, func(t Trouble) bool { return t.Rate != 0 })
	}
	about := strings.HasPrefix(a.path, "link.") || a.path == "disseminate.slow" || a.path == "sync.speeds"
	return about && !v.IsZero()
}

// retrieve looks at which keys were given, not at their values: it has its say
// beside errors in the values.
func (d *decoder) retrieve(r *Retrieve) {
	ended := r.Requests != 0 || r.Bytes != 0 || r.Duration != 0 || r.PerWorker != 0 || r.Replays() != nil ||
		r.Arrivals != nil && r.Arrivals.Process == "steps"
	if !ended && d.ok("retrieve.requests", "retrieve.bytes", "retrieve.duration", "retrieve.per_worker",
		"retrieve.arrivals.process") {
		d.fail("retrieve.requests", d.at["retrieve"], "give at least one of requests, bytes, duration, per_worker",
			"nothing ends a trial")
	}
	if r.Mix != nil {
		if *r.Mix == (OperationMix{}) && d.ok("retrieve.mix") {
			d.fail("retrieve.mix", d.at["retrieve.mix"], "such as {get: 80, put: 15, delete: 5}",
				"`retrieve.mix` has no operation")
		}
		d.meaningless("mix", "range", "order", "connections", "receive", "http", "arrivals", "bytes", "per_worker")
	}
	if r.Arrivals != nil {
		r.Concurrency = 0
		d.arrivals(r.Arrivals)
	}
}

// arrivals are in place of workers; each process has keys of its own.
func (d *decoder) arrivals(a *Arrivals) {
	replayed := a.Process == "log"
	if replayed {
		if d.at["retrieve.arrivals.speed"] == nil {
			a.Speed = 1
		}
		d.meaningless("arrivals.log", "range", "order", "zipf")
	}
	for _, key := range []string{"retrieve.concurrency", "retrieve.per_worker"} {
		if n := d.at[key]; n != nil {
			d.fail(key, n, "take one of them away; `max_in_flight` bounds what is under way",
				"`%s` has no meaning with `retrieve.arrivals`: requests do not wait for workers", key)
		}
	}
	if !d.ok("retrieve.arrivals.process") {
		return
	}
	for _, c := range []struct {
		key            string
		used, optional bool
	}{
		{"speed", replayed, true},
		{"rate", !replayed && a.Process != "steps", false},
		{"log", replayed, false},
		{"steps", a.Process == "steps", false},
	} {
		key := "retrieve.arrivals." + c.key
		if n := d.at[key]; n != nil && !c.used {
			d.fail(key, n, "", "`%s` has no meaning for the process %s", key, a.Process)
		} else if n == nil && c.used && !c.optional {
			d.fail(key, d.at["retrieve.arrivals"], "", "missing key `%s` for the process %s", key, a.Process)
		}
	}
}

// meaningless refuses keys of retrieve that do not go with another.
func (d *decoder) meaningless(with string, keys ...string) {
	for _, key := range keys {
		key = "retrieve." + key
		if n := d.at[key]; n != nil {
			d.fail(key, n, "take one of them away", "`%s` has no meaning with `retrieve.%s`", key, with)
		}
	}
}

// cellsPossible are the cells; it reports each level that makes one impossible, once.
func (d *decoder) cellsPossible(e *Experiment, conditions []gate.Condition) []Cell {
	cells, bad := e.expand(conditions)
	if bad == nil && e.Scenario == "overhead" && !slices.ContainsFunc(cells,
		func(c Cell) bool { return !e.estimateCell(&c).tooLong(&c) }) {
		d.fail("overhead.longest", d.first("overhead.longest", "overhead"),
			"raise `overhead.longest`, or make the objects smaller",
			"no cell is left: in all of them one operation is expected to take longer than %s", e.Overhead.Longest)
	}
	seen := map[string]bool{}
	for _, b := range bad {
		if at := b.at(); !seen[at] {
			seen[at] = true
			d.fail(b.path, d.first(at, b.path, "scenario"), b.hint, "%s", b.msg)
		}
	}
	return cells
}
