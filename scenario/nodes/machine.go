package nodes

import (
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// MachineMetrics are of the machine that carries all nodes, its links and the
// measurement, in the load.
func MachineMetrics() []record.Metric {
	return scenario.Machine("harness_cpu", "emulator_cpu", "box_cpu", "emulator_thread", "others_busy", "io_pressure")
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
