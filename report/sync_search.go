package report

import (
	"encoding/json"
	"fmt"
)

// searched reports whether the run walked its knobs instead of executing all
// combinations.
func (r *Report) searched() bool {
	var plan struct {
		Experiment struct {
			Sync *struct {
				Search json.RawMessage `json:"search"`
			} `json:"sync"`
		} `json:"experiment"`
	}
	if json.Unmarshal(r.Plan, &plan) != nil || plan.Experiment.Sync == nil {
		return false
	}
	s := string(plan.Experiment.Sync.Search)
	return s != "" && s != "null" && s != "false"
}

// walkTable is the path that a search took, as the engine told it.
func (r *Report) walkTable() Table {
	t := Table{Head: []Column{{"step", true}, {"after", true}, {"what", false}, {"why", false}}}
	for i, e := range r.walked {
		after := Entry{Text: "–"}
		if !r.Run.Started.IsZero() {
			d := e.At.Sub(r.Run.Started).Seconds()
			after = Entry{Text: span(max(0, d)), Raw: plain(d)}
		}
		t.Rows = append(t.Rows, []Entry{integer(i + 1), after, {Text: e.What, Raw: e.What}, {Text: e.Detail, Raw: e.Detail}})
	}
	return t
}

// searchTrust: how far a search is to be believed.
func searchTrust(r *Report) []Finding {
	if !r.searched() {
		return nil
	}
	f := Finding{Rule: "search", Tone: Warn, Title: "The best was searched for, not all was tried",
		Text: "The search changes one knob at a time from where it stands and keeps what races faster. It finds the best where knobs help independently; a pair that helps only together it may miss, and a race decides a small difference wrongly now and then. Trials were spent where it went: effects and interactions rest on the combinations that it visited, and where these do not tell them apart it is said. To be sure of the end, run its best and its neighbours as a full design."}
	tried, planned := 0, 0
	for _, c := range r.cells() {
		if c.plan.Sync != nil {
			planned++
			if c.Valid > 0 {
				tried++
			}
		}
	}
	f.Evidence = []string{fmt.Sprintf("%d of %s were tried, in %s", tried, plural(int64(planned), "combination", "combinations"), plural(int64(r.Run.Valid), "valid trial", "valid trials"))}
	if n := len(r.walked); n > 0 {
		e := r.walked[n-1]
		words := e.What
		if e.Detail != "" {
			words += ": " + e.Detail
		}
		f.Evidence = append(f.Evidence, "last of all: "+words)
	}
	return []Finding{f}
}
