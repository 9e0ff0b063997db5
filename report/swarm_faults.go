package report

import (
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/report/findings"
)

// FaultCount is in how many of a cell's valid trials a fault came, and was undone.
type FaultCount = findings.FaultCount

// faulted counts the faults of a cell's valid trials by what they recorded.
func (s *Swarm) faulted() []FaultCount {
	if s.quiet() {
		return nil
	}
	faults, err := experiment.ParseFaults(s.Faults)
	if err != nil {
		return nil // of a version that knows others
	}
	var all []FaultCount
	for _, f := range faults {
		q := FaultCount{Fault: f.String(), Trials: s.Trials, Ends: f.For > 0}
		for _, t := range s.trials {
			came, undone := 0, 0
			for _, e := range t.events {
				if e.Kind != "fault" || !strings.HasPrefix(e.Detail, q.Fault+": ") {
					continue
				}
				switch e.What {
				case string(f.Kind) + " begins":
					came = 1
				case string(f.Kind) + " ends":
					undone = 1
				}
			}
			q.Came, q.Undone = q.Came+came, q.Undone+undone
		}
		all = append(all, q)
	}
	return all
}

// faultEntry is the account of a cell's faults in a table.
func (s *Swarm) faultEntry() Entry {
	if len(s.FaultCounts) == 0 {
		return Entry{Text: "–"}
	}
	e := Entry{}
	var words []string
	for _, q := range s.FaultCounts {
		text := q.Words()
		if len(s.FaultCounts) > 1 {
			text = q.Fault + " " + text
		}
		words = append(words, text)
		if !q.Whole() {
			e.Tone = Warn
		}
	}
	e.Text = strings.Join(words, "; ")
	e.Raw = e.Text
	return e
}

// partialFaults looks at whether every trial had its faults.
func partialFaults(r *Report) []Finding {
	var all []findings.Faulted
	for i := range r.Swarms {
		all = append(all, findings.Faulted{Where: r.Swarms[i].name(), Faults: r.Swarms[i].FaultCounts})
	}
	return findings.PartialFaults(all)
}
