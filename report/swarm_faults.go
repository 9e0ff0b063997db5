package report

import (
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/experiment"
)

// FaultCount is in how many of a cell's valid trials a fault came, and was undone
// before the load was over. A fault that comes with progress may never come, and
// the last leecher may be done before what a fault took away is back: such trials
// are others than those that had the whole of it.
type FaultCount struct {
	Fault  string `json:"fault"`
	Trials int    `json:"trials"`
	Came   int    `json:"came"`
	Undone int    `json:"undone"`
	Ends   bool   `json:"ends"` // it is one that is to be undone
}

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

// whole reports whether every trial had all of the fault.
func (q FaultCount) whole() bool {
	return q.Came == q.Trials && (!q.Ends || q.Undone == q.Trials)
}

func (q FaultCount) words() string {
	n := plural(int64(q.Trials), "trial", "trials")
	if !q.Ends {
		return fmt.Sprintf("came in %d of %s", q.Came, n)
	}
	return fmt.Sprintf("came in %d of %s, undone before the end in %d", q.Came, n, q.Undone)
}

// faultEntry is the account of a cell's faults in a table.
func (s *Swarm) faultEntry() Entry {
	if len(s.FaultCounts) == 0 {
		return Entry{Text: "–"}
	}
	e := Entry{}
	var words []string
	for _, q := range s.FaultCounts {
		text := q.words()
		if len(s.FaultCounts) > 1 {
			text = q.Fault + " " + text
		}
		words = append(words, text)
		if !q.whole() {
			e.Tone = Warn
		}
	}
	e.Text = strings.Join(words, "; ")
	e.Raw = e.Text
	return e
}

// partialFaults: trials with a fault and without are in one median.
func partialFaults(r *Report) []Finding {
	f := Finding{Rule: "partial-faults", Tone: Warn, Title: "Not every trial had the whole fault",
		Text: "A fault did not come, or was not undone, before the last leecher was done: these cells' numbers are over trials with the fault, or the return, and trials without."}
	for i := range r.Swarms {
		s := &r.Swarms[i]
		for _, q := range s.FaultCounts {
			if s.Trials > 0 && !q.whole() {
				f.Evidence = append(f.Evidence, fmt.Sprintf("%s: “%s” %s", s.name(), q.Fault, q.words()))
			}
		}
	}
	return withEvidence(f)
}
