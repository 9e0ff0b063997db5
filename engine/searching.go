package engine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// searchEvent is the kind of the events that a search leaves: what it spent, and the
// races that it decided.
const searchEvent = "search"

const (
	searchPreparation = "preparation" // Detail: the system; Took: what it cost
	searchReady       = "ready"       // what was done once for a cell, before a trial; Detail: the cell
	searchTrial       = "trial"       // Detail: the cell; Took: with all that surrounds it, but for that
	searchRace        = "race"        // Detail: the system and what was decided, in words
	searchEnded       = "ended"       // likewise
)

// hunt is what a run remembers of its searches, beside its trials.
type hunt struct {
	broken   map[trialKey]bool        // trials that could not be executed
	took     map[int64]time.Duration  // by trial
	spent    map[string]time.Duration // by cell, or by system for its preparation, which counts once
	told     map[string]int           // races that have an event, by system
	ended    map[string]bool          // by system
	searches map[string]search        // by system
	ready    time.Duration            // that the present trial's cell took to be made ready for its trials
}

func (h *hunt) failed(key trialKey) {
	if h.broken == nil {
		h.broken = map[trialKey]bool{}
	}
	h.broken[key] = true
}

// remember takes what earlier sessions have spent and told.
func (h *hunt) remember(events []record.Event) {
	h.took, h.spent, h.told, h.ended = map[int64]time.Duration{}, map[string]time.Duration{}, map[string]int{}, map[string]bool{}
	for _, e := range events {
		if e.Kind != searchEvent {
			continue
		}
		system, _, _ := strings.Cut(e.Detail, ": ")
		switch e.What {
		case searchPreparation:
			h.spent[e.Detail] = e.Took
		case searchTrial, searchReady:
			h.spend(e.Trial, e.Detail, e.Took)
		case searchRace:
			h.told[system]++
		case searchEnded:
			h.ended[system] = true
		}
	}
}

func (h *hunt) spend(trial int64, cell string, took time.Duration) {
	h.spent[cell] += took
	if trial != 0 {
		h.took[trial] = took
	}
}

// searches reports whether the plan asks for a search.
func (r *run) searches() bool {
	s := r.plan.Experiment.Sync
	return s != nil && s.Search != nil
}

// search is that of one system.
func (r *run) search(system string) *search {
	if s, ok := r.hunt.searches[system]; ok {
		return &s
	}
	s := newSearch(r.plan, system)
	if r.hunt.searches == nil {
		r.hunt.searches = map[string]search{}
	}
	r.hunt.searches[system] = s
	return &s
}

// walks is what the searches ask for: those of one system after the other.
func (r *run) walks() iter.Seq[job] {
	return func(yield func(job) bool) {
		before := 0 // trials of earlier systems
		for _, use := range r.plan.Experiment.Systems {
			s := r.search(use.Name)
			for {
				done, spent := r.measured(use.Name)
				next := s.next(done, spent)
				if next.want == nil {
					before += len(done)
					break
				}
				cell, _, _ := r.cellAndUse(next.want.cell)
				if !yield(job{before + len(done) + 1, before + s.atMost(done, spent), cell, next.want.block}) {
					return
				}
			}
		}
	}
}

// measured is what has been measured of a system, and the seconds that it took.
func (r *run) measured(system string) (all map[trialKey]measured, spent float64) {
	all = map[trialKey]measured{}
	spent = r.hunt.spent[system].Seconds()
	for _, c := range cellsOf(r.plan, system) {
		spent += r.hunt.spent[c.ID].Seconds()
		for key := range r.hunt.broken {
			if key.cell == c.ID {
				all[key] = measured{value: math.NaN(), seconds: math.NaN()}
			}
		}
		for key, t := range r.done {
			if key.cell == c.ID {
				all[key] = measuredTrial(t, r.plan.Experiment.Limits, r.hunt.seconds(t))
			}
		}
	}
	return all, spent
}

// searchMetric is what a search makes small.
const searchMetric = "sync_time"

// measuredTrial is a trial as a search sees it. One that was left out says nothing of
// how long it would take: no sync is left out for that, but where the machine has not
// what it needs, as memory for its store, or links that are emulated.
func measuredTrial(t record.Trial, limits experiment.Limits, seconds float64) measured {
	if t.State == record.Skipped {
		return measured{math.NaN(), seconds, cmp.Or(t.Error, "it was left out")}
	}
	return measured{value: searchValue(t, limits), seconds: seconds}
}

// searchValue is what an executed trial is worth. One that did not come to its end has
// taken at least its deadline; one that is not valid is worth nothing.
func searchValue(t record.Trial, limits experiment.Limits) float64 {
	deadline := limits.Deadline.Seconds()
	if len(t.Invalid) > 0 {
		return math.NaN()
	}
	v, told := t.Metrics[searchMetric]
	complete := len(t.Outcomes) > 0
	for outcome, n := range t.Outcomes {
		complete = complete && (n == 0 || outcome == record.OK.String())
	}
	if !told || !complete || !(v > 0) {
		return deadline
	}
	return v
}

// seconds is what a trial took with all that surrounds it; when we died before that
// was recorded, its own seconds.
func (h *hunt) seconds(t record.Trial) float64 {
	if took, ok := h.took[t.ID]; ok {
		return took.Seconds()
	}
	return t.Seconds
}

// prepared notes what preparing a system took: once, because a session that goes on
// must decide as the one before would have.
func (r *run) prepared(system string, took time.Duration) {
	if _, known := r.hunt.spent[system]; known || !r.searches() {
		return
	}
	r.hunt.spent[system] = took
	r.event(searchEvent, searchPreparation, system, took)
}

// readied notes what was done once for a cell: at once, as its trial may be cut off.
func (r *run) readied(cell experiment.Cell, took time.Duration) {
	if !r.searches() {
		return
	}
	r.hunt.ready = took
	r.hunt.spend(0, cell.ID, took)
	r.event(searchEvent, searchReady, cell.ID, took)
}

// searched notes what a trial of a search took, and what it has decided.
func (r *run) searched(cell experiment.Cell, block int, t record.Trial, took time.Duration) error {
	if !r.searches() {
		return nil
	}
	if t.State == record.Failed {
		r.hunt.failed(trialKey{cell.ID, block})
	}
	took, r.hunt.ready = took-r.hunt.ready, 0
	r.hunt.spend(t.ID, cell.ID, took)
	err := r.rec.Event(record.Event{Trial: t.ID, At: time.Now(), Kind: searchEvent, What: searchTrial, Detail: cell.ID, Took: took})
	if err != nil {
		return err
	}
	return r.tellSearches()
}

// tellSearches records how far the searches have come: in full where the report looks
// for it, and as events what is new.
func (r *run) tellSearches() error {
	if !r.searches() {
		return nil
	}
	var all []record.Search
	for _, use := range r.plan.Experiment.Systems {
		done, spent := r.measured(use.Name)
		path := r.search(use.Name).next(done, spent).path
		all = append(all, path)
		decided := slices.DeleteFunc(slices.Clone(path.Races), func(race record.Race) bool { return race.Result == record.RaceOpen })
		for _, race := range decided[min(r.hunt.told[use.Name], len(decided)):] {
			r.tell(searchRace, use.Name+": "+raceText(race))
			r.hunt.told[use.Name]++
		}
		if path.Ended != "" && !r.hunt.ended[use.Name] {
			r.hunt.ended[use.Name] = true
			r.tell(searchEnded, fmt.Sprintf("%s: the search ends at %s after %d trials: %s", use.Name, cellText(r.plan, path.Best), path.Trials, path.Why))
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("engine: record the search: %w", err)
	}
	return r.rec.Meta(record.KeySearch, string(b))
}

func (r *run) tell(what, text string) {
	r.event(searchEvent, what, text, 0)
	r.say.Note(text)
}

// raceText is a race in one line.
func raceText(r record.Race) string {
	text := fmt.Sprintf("%s %s against %s: %s", r.Factor, r.To, r.From, r.Result)
	if r.Pairs > 1 {
		text += fmt.Sprintf(", %.3g of its time (%.3g to %.3g, %d pairs)", r.Ratio, r.Lo, r.Hi, r.Pairs)
	}
	if r.Result == record.RaceFaster {
		return text
	}
	return text + "; " + r.Why
}

// cellText is the levels of a cell in one line.
func cellText(plan *experiment.Plan, id string) string {
	for _, c := range plan.Cells {
		if c.ID != id {
			continue
		}
		var parts []string
		for _, f := range c.Factors {
			if f.Path != "system" {
				parts = append(parts, f.Label+" "+f.Value)
			}
		}
		return strings.Join(parts, ", ")
	}
	return id
}
