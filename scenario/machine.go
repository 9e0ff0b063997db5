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
	return record.Metric{Key: "box_cpu", Name: "CPU used by anybody", Unit: "ratio", Better: record.Neither,
		Help: "share of the machine's CPU time that was used by anything on it: near 1 it is the machine that was measured (use and time are read one after the other, so it may come out a little above 1; reports then show 100 % and keep the number)"}
}

func OthersBusy() record.Metric {
	return record.Metric{Key: "others_busy", Name: "CPU used by others", Unit: "ratio", Better: record.Lower,
		Help: "share of the machine's CPU time that went to processes which are not part of the run"}
}

func BusiestCPU() record.Metric {
	return record.Metric{Key: "busiest_cpu", Name: "CPU of the busiest process", Unit: "1", Better: record.Neither,
		Help: "CPUs that the one of the system's processes kept busy that used most, with the children that it waited for, over the trial: 1 is what a single thread can use, or several that each use less"}
}

func EmulatorThread() record.Metric {
	return record.Metric{Key: "emulator_thread", Name: "CPU of the link emulator's busiest thread", Unit: "ratio", Better: record.Neither,
		Help: "share of the time in which it used a CPU: near 1 no packet passes sooner, whatever the other CPUs do. The larger of this and box_cpu is the machine line, as a share of the time"}
}

func IOPressure() record.Metric {
	return record.Metric{Key: "io_pressure", Name: "waiting for storage", Unit: "ratio", Better: record.Lower,
		Help: "share of the trial's time in which at least one task on the machine, whoever it belonged to, waited for storage: the \"some\" of /proc/pressure/io, which also counts while others compute; not reported by kernels without pressure stall information"}
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
