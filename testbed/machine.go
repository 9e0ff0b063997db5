package testbed

import (
	"runtime"

	"github.com/plimsoll-project/plimsoll/record"
)

// here is the machine that we run on.
type here struct{ t *Testbed }

// Here is the machine that we run on, of which no testbed has been made yet: it has
// nothing to poll and makes no RAM disks.
func Here() Machine { return here{} }

// Name implements Machine.
func (here) Name() string { return "" }

// CPUs implements Machine.
func (here) CPUs() int { return runtime.NumCPU() }

// Poll implements Machine.
func (m here) Poll() []record.Sample {
	if m.t == nil {
		return nil
	}
	return m.t.look()
}
