package findings

import "github.com/plimsoll-project/plimsoll/internal/words"

// Value is a figure of one cell with its interval, over N trials. NaN: not known.
type Value struct {
	Mid, Lo, Hi float64
	N           int
}

// fewTrials is how many trials a cell needs before a rule speaks of it: of two,
// both are beyond a limit once in four times when each is as often below it.
const fewTrials = 3

// above reports whether the whole interval lies above a limit.
func (v Value) above(limit float64) bool { return v.N >= fewTrials && v.Lo > limit }

func (v Value) words(unit string) string { return words.Range(v.Mid, v.Lo, v.Hi, unit) }
