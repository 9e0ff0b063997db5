package studylog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	plan "github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// Types of records that only this program writes and reads. The study's program
// ignores types that it does not know.
const (
	typeCell    = "plimsoll_cell"    // what a configuration of the study has no place for
	typeEvent   = "plimsoll_event"   // a fault, or what happened to a node
	typeLeecher = "plimsoll_leecher" // how one ended that did not complete
)

// ours is what a record of the type plimsoll_cell tells beside the configuration
// that it follows.
type ours struct {
	Type     string            `json:"entry_type"`
	System   string            `json:"system"` // its name in the run
	Baseline bool              `json:"baseline,omitempty"`
	Factors  map[string]string `json:"factors"` // by path, see factorPaths
}

// factorPaths are the parts of a cell that the study's configurations have no
// place for: cells that differ in one of them are not one.
var factorPaths = [...]string{"disseminate.faults", "disseminate.join", "disseminate.stay", "disseminate.slow", "disseminate.up", "disseminate.slow_up", "disseminate.slow_down",
	"link.rate", "link.delay", "link.jitter", "link.loss"}

// factors are the values of factorPaths; empty: what the plan takes without one.
type factors [len(factorPaths)]string

func factorsOf(c plan.Cell) (f factors) {
	d := c.Disseminate
	text := func(zero bool, s string) string {
		if zero {
			return ""
		}
		return s
	}
	word := func(s, zero string) string { return text(s == zero, s) }
	rate := func(r plan.BitRate) string { return text(r == 0, r.String()) }
	return factors{word(d.Faults, "none"), word(d.Join, "together"), word(d.Stay, "forever"), text(d.Slow == 0, d.Slow.String()), rate(d.Up), rate(d.SlowUp), rate(d.SlowDown),
		rate(c.Link.Rate), text(c.Link.Delay == 0, c.Link.Delay.String()), text(c.Link.Jitter == 0, c.Link.Jitter.String()), text(c.Link.Loss == 0, c.Link.Loss.String())}
}

// cell is the record of a cell of ours.
func (x *exported) ours() ours {
	o := ours{Type: typeCell, System: x.cell.System, Baseline: x.baseline, Factors: map[string]string{}}
	for i, v := range factorsOf(x.cell) {
		if v != "" {
			o.Factors[factorPaths[i]] = v
		}
	}
	return o
}

// factors of an experiment.
func (x *experiment) factors() (f factors) {
	if x.ours != nil {
		for i, path := range factorPaths {
			f[i] = x.ours.Factors[path]
		}
	}
	return f
}

// system is the name of an experiment's system.
func (x *experiment) system() string {
	if x.ours != nil {
		return cmp.Or(x.ours.System, x.config.System)
	}
	return x.config.System
}

// axes are the lines of a plan with all values of all factors, by section.
func axes(all []factors) map[string]string {
	neutral := map[string]string{"disseminate.faults": "none", "disseminate.join": "together", "disseminate.stay": "forever", "disseminate.slow": "0%", "disseminate.up": "link",
		"disseminate.slow_up": "link", "disseminate.slow_down": "link", "link.rate": "unlimited", "link.delay": "0s", "link.jitter": "0s", "link.loss": "0%"}
	sections := map[string]string{}
	for i, path := range factorPaths {
		var values []string
		for _, f := range all {
			if v := `"` + cmp.Or(f[i], neutral[path]) + `"`; !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		section, key, _ := strings.Cut(path, ".")
		switch {
		case len(values) == 1 && values[0] == `"`+neutral[path]+`"`:
		case len(values) == 1: // some take only one
			sections[section] += ", " + key + ": " + values[0]
		default:
			sections[section] += ", " + key + ": [" + strings.Join(values, ", ") + "]"
		}
	}
	return sections
}

// happenings are a trial's events, and ends of leechers, that the study's types
// have no place for.
func (x *exported) happenings(t *exportedTrial, at func(int64) moment) (all []entry) {
	for _, e := range t.events {
		if e.Kind != "fault" && (e.Kind != "node" || e.What == eventSeeded) {
			continue
		}
		took := number(e.Took.Seconds())
		detail := e.Detail
		all = append(all, entry{Type: typeEvent, Name: e.What, Stage: e.Kind, Error: &detail, Duration: &took, Dataset: t.dataset, Timestamp: moment{e.At.Truncate(time.Microsecond)}})
	}
	for _, op := range t.leechers {
		if op.Outcome != record.OK {
			class := op.Class
			all = append(all, entry{Type: typeLeecher, Name: op.Outcome.String(), Error: &class, Node: runner, Destination: x.names[op.Worker], Dataset: t.dataset, Timestamp: at(op.LastByte)})
		}
	}
	return all
}

// happened gives those records to the trials of which they are.
func (x *experiment) happened() {
	for i := range x.happenings {
		e := &x.happenings[i]
		var best *trial
		for _, t := range x.trials {
			if t.dataset == e.Dataset && (best == nil || !t.first.After(e.Timestamp.Time)) {
				best = t
			}
		}
		switch {
		case best == nil:
		case e.Type == typeLeecher:
			if best.fates == nil {
				best.fates = map[string]*entry{}
			}
			best.fates[e.Destination] = e
		default:
			took := time.Duration(0)
			if e.Duration != nil {
				took = time.Duration(float64(*e.Duration) * float64(time.Second)).Round(time.Microsecond)
			}
			best.happenings = append(best.happenings, record.Event{At: e.Timestamp.Time, Kind: e.Stage, What: e.Name, Detail: *e.Error, Took: took})
		}
	}
}

// told is how a leecher ended that did not complete, where a record says so.
func (t *trial) told(name string, op *record.Op, epoch time.Time) {
	e := t.fates[name]
	if e == nil || op.Outcome == record.OK {
		return
	}
	if o, err := record.ParseOutcome(e.Name); err == nil {
		op.Outcome, op.Class = o, *e.Error
		op.LastByte = max(op.Start, op.FirstByte, int64(e.Timestamp.Sub(epoch)))
	}
}
