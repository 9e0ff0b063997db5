package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/experiment/suggest"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/report/findings"
)

// Prediction is what the models of a run say of a cell that need not have been
// executed, or, of a check, of each that was.
type Prediction struct {
	Format     int           `json:"format"`
	Scenario   string        `json:"scenario"`
	Run        string        `json:"run"` // name of its directory
	Asked      []Factor      `json:"asked"`
	Confidence float64       `json:"confidence"`
	Answers    []Predicted   `json:"answers,omitempty"`
	Checks     []Calibration `json:"checks,omitempty"` // instead of answers
	Try        string        `json:"try,omitempty"`    // the command that would run what is refused
}

// Predicted is what one model says.
type Predicted struct {
	System   string        `json:"system"`
	What     string        `json:"what"`               // what the model is of: "put, connections keep", "throughput"
	Model    string        `json:"model,omitempty"`    // which model it is
	Unit     string        `json:"unit"`               // of all numbers
	Trial    Estimate      `json:"trial"`              // the interval is for the median of a trial
	Single   Estimate      `json:"single"`             // the interval is for one operation
	Line     Num           `json:"line"`               // what the link alone would give
	Ran      int           `json:"ran"`                // cells of the run that are what was asked for: several where that leaves a factor open
	Measured *MeasuredCell `json:"measured,omitempty"` // what was measured, where the run has this very cell
	Cells    int           `json:"cells"`              // of the run, predicted from the others
	Inside   int           `json:"inside"`             // of them, that lie in their intervals
	Note     string        `json:"note,omitempty"`     // what the reader must know
	Refused  string        `json:"refused,omitempty"`
}

// MeasuredCell is a cell of the run: the median over its trials, with the interval of
// that.
type MeasuredCell struct {
	Cell   string `json:"cell"`
	Trials int    `json:"trials"`
	Estimate
}

// measure adds what the cells of the run that were asked for have of a metric, which is
// nothing where they are several.
func (a *Predicted) measure(ran []*Cell, metric string) {
	if a.Ran = len(ran); a.Ran != 1 {
		return
	}
	c := ran[0]
	if s, ok := c.Metrics[metric]; ok && s.N > 0 && s.Median.Known() {
		a.Measured = &MeasuredCell{c.ID, s.N, Estimate{s.Median, s.Lo, s.Hi}}
	}
}

// linkMayBeOff is by which share a valid trial of a cell may be beyond its load line, as
// [findings.Beyond] has it; never less than [EffectFloor] and that slack, for the line
// of a prediction is itself that of links that were measured.
func linkMayBeOff(c *Cell) Num {
	return Num(max(EffectFloor, float64(c.plan.Link.Tolerance)) + findings.BeyondSlack)
}

// cut ends the interval where the link ends: no median of a trial lies beyond the load
// line by more than a link may be off; most is set where the line is the most that there
// can be, as of a rate, and not the least, as of a time. Where the middle itself lies
// beyond, there is no prediction.
func (a *Predicted) cut(most bool, off Num) {
	if !a.Line.Known() || !(a.Line > 0) || !a.Trial.Value.Known() {
		return
	}
	over := a.Line / a.Trial.Value
	if most {
		over = a.Trial.Value / a.Line
	}
	if over > 1+off {
		a.Refused = fmt.Sprintf("the model goes beyond the load line here (%s of %s)", show(float64(a.Trial.Value), a.Unit), show(float64(a.Line), a.Unit))
		a.Trial, a.Single = noEstimate, noEstimate
		return
	}
	was := a.Trial
	for _, e := range []*Estimate{&a.Trial, &a.Single} {
		if most {
			e.Hi = min(e.Hi, a.Line*(1+off))
		} else {
			e.Lo = max(e.Lo, a.Line/(1+off))
		}
	}
	if was != a.Trial && was.Lo.Known() && was.Hi.Known() {
		end := was.Lo
		if most {
			end = was.Hi
		}
		a.Note = joined([]string{a.Note, fmt.Sprintf("the interval is cut %s beyond what the link allows: the model alone would go to %s", percent(float64(off)), show(float64(end), a.Unit))})
	}
}

// Calibration is how well a model predicts each of its cells from the others.
type Calibration struct {
	System   string    `json:"system"`
	What     string    `json:"what"`
	Model    string    `json:"model,omitempty"`
	Unit     string    `json:"unit"`
	Cells    int       `json:"cells"`    // predicted
	Inside   int       `json:"inside"`   // of them, medians that lie in their intervals
	Trials   int       `json:"trials"`   // of these cells
	Within   int       `json:"within"`   // of them, that lie in the interval of a trial
	Unasked  int       `json:"unasked"`  // cells that the others do not support
	Distance Num       `json:"distance"` // median of the relative distances, without their signs
	Held     []HeldOut `json:"held"`
	Refused  string    `json:"refused,omitempty"` // why a prediction would be
}

// HeldOut is a cell beside what the model of all others gives for it.
type HeldOut struct {
	Cell     string   `json:"cell"`
	Where    string   `json:"where"`
	Trials   int      `json:"trials"`
	Measured Num      `json:"measured"`  // median over its trials
	Time     Estimate `json:"predicted"` // with the interval of that median
	Within   int      `json:"within"`    // trials that lie in the interval of a trial
	Refused  string   `json:"refused,omitempty"`
}

// inside reports whether a cell lies in its interval.
func (h HeldOut) inside() bool { return h.Time.Lo <= h.Measured && h.Measured <= h.Time.Hi }

// off is by which share the measured differs from the predicted.
func (h HeldOut) off() float64 { return float64(h.Measured/h.Time.Value) - 1 }

// predictor is a scenario's way to predict.
type predictor interface {
	// whole completes what is asked by what goes without saying. An error: it makes
	// no sense, for no system.
	whole(r *Report, e *experiment.Experiment, asked []Factor) ([]Factor, error)
	// models are those of the run, in the order of the answers.
	models(r *Report, in *input, e *experiment.Experiment) []predictive
}

// predictive is a model that can be asked.
type predictive interface {
	// what the model is of.
	what() string
	// answer asks it; false: it is of something else than what was asked for.
	answer(asked []Factor) (Predicted, bool)
	// check leaves each of its cells out in turn and predicts it from the others.
	check() []Calibration
}

// rttWord is a word for twice link.delay.
const rttWord = "rtt"

const delayPath, sizePath = "link.delay", "data.size"

// Predict computes the models of a run and asks them for each of the cells that
// sets describe, a cell being levels as key=value: what is not set is what it was
// in the run. An error: the scenario has no models, or what is asked makes no
// sense; an answer that its model must not give is refused in that answer.
func Predict(run *record.Reader, sets ...[]string) ([]*Prediction, error) {
	r, in, e, err := modelled(run)
	if err != nil {
		return nil, err
	}
	if len(sets) == 0 {
		sets = [][]string{nil}
	}
	var all []*Prediction
	models := r.lens.predict.models(r, in, e)
	for _, set := range sets {
		p := r.prediction()
		for _, s := range set {
			f, err := levelAsked(e, s)
			if err != nil {
				return nil, err
			}
			if asking(p.Asked, f.Path) != nil {
				return nil, fmt.Errorf("%s is set twice", f.Path)
			}
			p.Asked = append(p.Asked, f)
		}
		if p.Asked, err = r.lens.predict.whole(r, e, p.Asked); err != nil {
			return nil, err
		}
		p.Answers = []Predicted{}
		for _, m := range models {
			if a, ok := m.answer(p.Asked); ok {
				p.Answers = append(p.Answers, a)
			}
		}
		if len(p.Answers) == 0 {
			return nil, errors.New(nothingAsked(models))
		}
		if slices.ContainsFunc(p.Answers, func(a Predicted) bool { return a.Refused != "" && a.Measured == nil }) {
			p.Try = "plimsoll run EXPERIMENT"
			for _, f := range p.Asked {
				p.Try += " --set " + f.Path + "=" + f.Value
			}
		}
		all = append(all, p)
	}
	return all, in.err
}

// nothingAsked says that no model is of what was asked for.
func nothingAsked(models []predictive) string {
	var names []string
	for _, m := range models {
		if w := m.what(); !slices.Contains(names, w) {
			names = append(names, w)
		}
	}
	if names == nil {
		return "this run has no model to predict from: no valid trials"
	}
	return "no operation of this run is what was asked for; it has " + list(names)
}

// Combinations are all cells that levels describe of which each may be several,
// as in rtt=40ms,80ms: one set of levels for each cell.
func Combinations(set []string) [][]string {
	all := [][]string{nil}
	for _, s := range set {
		key, values, _ := strings.Cut(s, "=")
		var more [][]string
		for _, have := range all {
			for _, v := range strings.Split(values, ",") {
				level := s
				if strings.Contains(values, ",") {
					level = key + "=" + strings.TrimSpace(v)
				}
				more = append(more, append(slices.Clone(have), level))
			}
		}
		all = more
	}
	return all
}

// CheckPredictions leaves each cell of a run out in turn and predicts it from
// the others.
func CheckPredictions(run *record.Reader) (*Prediction, error) {
	r, in, e, err := modelled(run)
	if err != nil {
		return nil, err
	}
	p := r.prediction()
	p.Checks = []Calibration{}
	for _, m := range r.lens.predict.models(r, in, e) {
		p.Checks = append(p.Checks, m.check()...)
	}
	return p, in.err
}

func (r *Report) prediction() *Prediction {
	return &Prediction{Format: Format, Scenario: r.Scenario, Run: r.dir, Asked: []Factor{}, Confidence: Confidence}
}

// modelled is the report of a run whose scenario has models, without figures.
func modelled(run *record.Reader) (*Report, *input, *experiment.Experiment, error) {
	in, err := gather(run)
	if err != nil {
		return nil, nil, nil, err
	}
	if lensOf(in.plan.Scenario).predict == nil {
		return nil, nil, nil, fmt.Errorf("a run of the scenario %s has no model to predict from: it is one long trial, and nothing in it tests how it would go on, or go with other sizes; predict works for %s", in.plan.Scenario, list(predictable()))
	}
	var plan experiment.Plan
	if err := json.Unmarshal(in.raw, &plan); err != nil {
		return nil, nil, nil, err
	}
	r := compute(in)
	return r, in, &plan.Experiment, in.err
}

// predictable are the scenarios whose runs can be predicted from.
func predictable() []string {
	var names []string
	for _, s := range []string{"retrieve", "overhead", "upload", "collect", "disseminate", "sync"} {
		if lensOf(s).predict != nil {
			names = append(names, s)
		}
	}
	return names
}

// levelAsked reads what was set: a path with a level, or rtt with a time.
func levelAsked(e *experiment.Experiment, set string) (Factor, error) {
	key, text, ok := strings.Cut(set, "=")
	if !ok {
		return Factor{}, fmt.Errorf("%q is not key=value, such as data.size=300kB", set)
	}
	if key != rttWord {
		path, err := fullPath(e, key)
		if err != nil {
			return Factor{}, err
		}
		f, err := e.Level(path, text)
		return Factor(f), err
	}
	f, err := e.Level(delayPath, text)
	if err != nil {
		return Factor{}, fmt.Errorf("%s: %w", rttWord, err)
	}
	half := experiment.Duration(f.Number / 2 * 1e9)
	f, err = e.Level(delayPath, half.String())
	return Factor(f), err
}

// ShortName is what the factor at a path may be called when asking: its last name where
// that means it and no other, else the path.
func ShortName(e *experiment.Experiment, path string) string {
	last := path[strings.LastIndex(path, ".")+1:]
	if full, err := fullPath(e, last); err != nil || full != path {
		return path
	}
	return last
}

// fullPath is the path of a factor that may be called by its last name alone, where
// that is of one factor only, or of only one that varies: size for data.size. A path
// that there is not is left as it is; of a last name that there is not, an error tells
// the nearest.
func fullPath(e *experiment.Experiment, key string) (string, error) {
	var all, vary []string
	for _, path := range e.Paths() {
		switch {
		case path == key:
			return key, nil
		case strings.HasSuffix(path, "."+key):
			all = append(all, path)
			if len(e.Levels(path)) > 1 {
				vary = append(vary, path)
			}
		}
	}
	if len(vary) == 1 {
		return vary[0], nil
	}
	switch len(all) {
	case 0:
		last := []string{rttWord}
		for _, path := range e.Paths() {
			last = append(last, path[strings.LastIndex(path, ".")+1:])
		}
		if near := suggest.Nearest(key, last); near != "" && !strings.Contains(key, ".") {
			return "", fmt.Errorf("`%s` is no factor of this experiment; did you mean `%s`?", key, near)
		}
		return key, nil
	case 1:
		return all[0], nil
	}
	return "", fmt.Errorf("`%s` may be %s: say which", key, strings.Join(all, " or "))
}

// Only keeps what is said of these systems; all for none. An error: one of them
// is not in the run.
func (p *Prediction) Only(systems []string) error {
	if len(systems) == 0 {
		return nil
	}
	known := map[string]bool{}
	var names []string
	know := func(name string) {
		if !known[name] {
			known[name] = true
			names = append(names, name)
		}
	}
	for _, a := range p.Answers {
		know(a.System)
	}
	for _, c := range p.Checks {
		know(c.System)
	}
	for _, s := range systems {
		if !known[s] {
			return fmt.Errorf("no model of a system %q; there are models of %s", s, list(names))
		}
	}
	p.Answers = slices.DeleteFunc(p.Answers, func(a Predicted) bool { return !slices.Contains(systems, a.System) })
	p.Checks = slices.DeleteFunc(p.Checks, func(c Calibration) bool { return !slices.Contains(systems, c.System) })
	return nil
}

// Refused reports whether there is not one answer, neither predicted nor measured.
func (p *Prediction) Refused() bool {
	return !slices.ContainsFunc(p.Answers, func(a Predicted) bool { return a.Refused == "" || a.Measured != nil }) && p.Checks == nil
}
