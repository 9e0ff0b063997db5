package scenario

import (
	"math"
	"syscall"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
)

// What the machine as a whole did while a trial lasted (of a trial that goes on over
// several sessions, in the last), from which a report derives what limited it.

func BoxCPU() record.Metric {
	return record.Metric{Key: "box_cpu", Name: "CPU of the whole machine", Unit: "ratio", Better: record.Neither,
		Help: "share of the machine's CPU used by everything; near 1 the machine is the limit"}
}

func OthersBusy() record.Metric {
	return record.Metric{Key: "others_busy", Name: "CPU used by others", Unit: "ratio", Better: record.Lower,
		Help: "share of the machine's CPU used by processes outside the run"}
}

func BusiestCPU() record.Metric {
	return record.Metric{Key: "busiest_cpu", Name: "CPU of the busiest process", Unit: "1", Better: record.Neither,
		Help: "CPUs used by the system's busiest process and its children"}
}

func EmulatorThread() record.Metric {
	return record.Metric{Key: "emulator_thread", Name: "CPU of the link emulator's busiest thread", Unit: "ratio",
		Better: record.Neither,
		Help:   "share of the time that this thread used a CPU; the larger of this and box_cpu is the machine line"}
}

func IOPressure() record.Metric {
	return record.Metric{Key: "io_pressure", Name: "waiting for storage", Unit: "ratio", Better: record.Lower,
		Help: "share of the time in which some task on the machine waited for storage"}
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
