package record

import (
	"encoding/json"
	"fmt"
)

// KeySearch is the name in a run's metadata of its searches, see [Reader.Search].
const KeySearch = "search"

// Search is how the best combination of a system's factors was looked for, by
// coordinate descent: the path taken, with what decided each step.
type Search struct {
	System  string         `json:"system"`
	Factors []SearchFactor `json:"factors"`
	Start   string         `json:"start"` // the default: its cell
	Best    string         `json:"best"`  // where the walk stands, or ended: its cell
	Races   []Race         `json:"races"`
	Trials  int            `json:"trials"`          // executed, warm-up included
	Spent   float64        `json:"spent"`           // seconds: trials with all that surrounds them, and preparation
	Budget  float64        `json:"budget"`          // seconds
	Ended   string         `json:"ended,omitempty"` // one of the constants; empty: it goes on
	Why     string         `json:"why,omitempty"`   // it ended: one sentence
}

// SearchFactor is what was walked along.
type SearchFactor struct {
	Path   string   `json:"path"`
	Label  string   `json:"label"`
	Levels []string `json:"levels"` // the first is the default
}

// Race is one value of a factor against another, all else being equal, in paired
// trials: those of the same block.
type Race struct {
	Pass       int     `json:"pass"`   // from 1
	Factor     string  `json:"factor"` // its path
	From       string  `json:"from"`   // the level that is to be beaten
	To         string  `json:"to"`
	Incumbent  string  `json:"incumbent"` // cells
	Challenger string  `json:"challenger"`
	Pairs      int     `json:"pairs"`           // of valid trials
	Ratio      float64 `json:"ratio,omitempty"` // the challenger's time by the incumbent's, geometric mean over the pairs; 0: no pair
	Lo         float64 `json:"lo,omitempty"`    // its interval; 0: less than two pairs
	Hi         float64 `json:"hi,omitempty"`
	Result     string  `json:"result"` // one of the constants
	Why        string  `json:"why"`    // one sentence
}

// Results of a race.
const (
	RaceFaster  = "faster"        // the interval is below 1: the walk goes on from the challenger
	RaceSlower  = "slower"        // it is above 1
	RaceSame    = "no difference" // repetitions are used up, and the interval holds 1: the incumbent stays
	RaceInvalid = "invalid"       // too many trials were no valid ones: the incumbent stays
	RaceUntried = "not tried"     // a trial was left out, as this machine cannot execute it: the incumbent stays
	RaceMissing = "missing"       // the plan has no such cell
	RaceBeaten  = "beaten"        // the challenger was where the walk stood, and has lost that: once is enough
	RaceOpen    = "open"          // not decided: it goes on, or the budget is used up
)

// Why a search ended.
const (
	SearchNoGain = "no gain" // no other value of any factor is faster
	SearchBudget = "budget"  // the next trial would have gone beyond it
)

// Search is the searches of a run, one for each of its systems; none when it did
// not search.
func (r *Reader) Search() ([]Search, error) {
	text := r.Meta()[KeySearch]
	if text == "" {
		return nil, nil
	}
	var all []Search
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("record: the searches of the run: %w", err)
	}
	return all, nil
}
