package engine

import (
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// Progress shows how a run goes on. It is called from several goroutines.
type Progress interface {
	// Start is called once, when the preconditions hold.
	Start()
	// Phase begins something that takes time: "starting nginx".
	Phase(what string)
	// Note is something the user should know, once.
	Note(text string)
	// Begin, Load and End frame a trial; n of total counts trials from 1.
	Begin(n, total int, cell experiment.Cell, block int, warmup bool)
	Load(ops, bytes int64, elapsed time.Duration)
	// State is called while a trial that goes on for long runs.
	State(s scenario.State, cell experiment.Cell)
	End(trial record.Trial, cell experiment.Cell)
}

type silent struct{}

func (silent) Start()                                     {}
func (silent) Phase(string)                               {}
func (silent) Note(string)                                {}
func (silent) Begin(int, int, experiment.Cell, int, bool) {}
func (silent) Load(int64, int64, time.Duration)           {}
func (silent) State(scenario.State, experiment.Cell)      {}
func (silent) End(record.Trial, experiment.Cell)          {}
