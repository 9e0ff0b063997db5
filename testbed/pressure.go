package testbed

import (
	"math"

	"github.com/prometheus/procfs"
)

// IOPressure is for how many seconds since boot at least one task of the machine
// waited for storage (the "some" of /proc/pressure/io: Documentation/accounting/psi.rst
// of Linux). NaN where the kernel does not tell.
func IOPressure() float64 {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return math.NaN()
	}
	p, err := fs.PSIStatsForResource("io")
	if err != nil || p.Some == nil {
		return math.NaN()
	}
	return float64(p.Some.Total) / 1e6
}
