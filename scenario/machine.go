package scenario

import (
	_ "embed"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

//go:embed machine.txt
var machine string

// Machine returns the metrics of the machine as a whole during a trial (during its last session,
// if it has several). Every scenario has them; reports derive from them what limited the trial.
func Machine() []record.Metric { return Definitions(machine, "machine") }

// PutMachine adds the values of these metrics that the engine measured. They are recorded as
// details with the metrics' names.
func PutMachine(in *Measured, put func(string, float64)) {
	for _, m := range Machine() {
		put(m.Key, in.Detail(record.DetailUsage, m.Key))
	}
}

// Definitions returns the metrics of some sets from text, which has lines of the form
// "set|key|name|unit|better|help". Malformed lines panic: the texts are embedded, and tests read
// all of them.
func Definitions(text string, sets ...string) (all []record.Metric) {
	for _, set := range sets {
		for line := range strings.Lines(text) {
			if f := strings.Split(strings.TrimSuffix(line, "\n"), "|"); f[0] == set {
				all = append(all, record.Metric{Key: f[1], Name: f[2], Unit: f[3], Better: record.Better(f[4]), Help: f[5]})
			}
		}
	}
	return all
}
