package scenario

import (
	_ "embed"
	"math"
	"strings"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

//go:embed machine.txt
var machine string

// Machine are the metrics, of every scenario, of what the machine as a whole did while a trial lasted (of a
// trial that goes on over several sessions, in the last), from which a report derives what limited it.
func Machine() []record.Metric { return Definitions(machine, "machine") }

// PutMachine adds what the engine saw of these, which has the same names as it is recorded.
func PutMachine(in *Measured, put func(string, float64)) {
	for _, m := range Machine() {
		put(m.Key, in.Detail(record.DetailUsage, m.Key))
	}
}

// SelfCPU is the CPU seconds of this process.
func SelfCPU() float64 {
	cpu, _ := Self()
	return cpu
}

// Self is the CPU seconds of this process, and its highest resident set in bytes; NaN: not known.
func Self() (cpu, rssPeak float64) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return math.NaN(), math.NaN()
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds(), float64(u.Maxrss) * 1024
}

// Definitions reads definitions of metrics, "set|key|name|unit|better|help" a line: those of some
// sets, in their order. They are data of ours, and tests read all of them: a line that is
// none is a bug.
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
