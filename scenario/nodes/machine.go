package nodes

import (
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// MachineMetrics are of the machine that carries all nodes, its links and the
// measurement, in the load.
func MachineMetrics() []record.Metric {
	return []record.Metric{
		{Key: "harness_cpu", Name: "CPU of the measurement", Unit: "ratio", Better: record.Lower,
			Help: "share of the machine's CPU used by plimsoll itself"},
		{Key: "emulator_cpu", Name: "CPU of the link emulator", Unit: "ratio", Better: record.Lower,
			Help: "share of the machine's CPU used by the link emulator, if it is a process"},
		scenario.BoxCPU(), scenario.EmulatorThread(), scenario.OthersBusy(), scenario.IOPressure(),
	}
}

// PutMachine adds what the engine saw of these.
func PutMachine(u scenario.Usage, put func(string, float64)) {
	put("harness_cpu", u.HarnessCPU)
	put("emulator_cpu", u.EmulatorCPU)
	put("box_cpu", u.BoxCPU)
	put("emulator_thread", u.EmulatorThread)
	put("others_busy", u.OthersBusy)
	put("io_pressure", u.IOPressure)
}
