package scenario

import (
	_ "embed"
	"math"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

//go:embed machine.txt
var machine string

// Machine are the metrics of these keys, of what the machine as a whole did while a trial lasted (of a
// trial that goes on over several sessions, in the last), from which a report derives what limited it.
func Machine(keys ...string) (all []record.Metric) {
	for _, key := range keys {
		for _, m := range Definitions(machine)["machine"] {
			if m.Key == key {
				all = append(all, m)
			}
		}
	}
	return all
}

// PutUsage adds what the engine saw of the processes.
func PutUsage(u Usage, put func(string, float64)) {
	put("system_rss_peak", u.SystemRSSPeak)
	put("others_busy", u.OthersBusy)
	put("box_cpu", u.BoxCPU)
	put("emulator_thread", u.EmulatorThread)
	put("busiest_cpu", u.BusiestCPU)
	put("io_pressure", u.IOPressure)
}

// SelfCPU is the CPU seconds of this process.
func SelfCPU() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return math.NaN()
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
