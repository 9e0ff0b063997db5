package httpload

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// Thresholds above which the generator counts as the bottleneck. Shares are of wall time;
// waits are compared with measured latencies, because 1 ms is nothing in an answer of 1 s
// and everything in one of 1 ms.
const (
	maxBusy      = 0.9  // share of an event loop's time not spent waiting for the network
	maxCPUShare  = 0.9  // share of the CPUs of this process
	maxOwnShare  = 0.25 // share of our own wait in the median time to the first byte
	minOwnWait   = 1e-3 // seconds; shorter waits are not reported
	maxOwnLate   = 5e-3 // seconds; lateness of an open loop at p99, or of a shard's start
	maxLateStart = 0.01 // lateness of a shard's start as a share of the time
	minRunDelay  = 0.2  // share of the time spent waiting for a CPU
)

// conclude computes rates and whether the generator was the bottleneck.
func (t *trial) conclude(res *Result) {
	s := t.spec
	res.Receive = t.receivePath(res.Receive)
	res.Warmed, res.Redirects = t.sum.warmed, t.sum.redirects
	res.CPU = t.cpuEnded - t.cpuBegan
	took := res.seconds()
	if took <= 0 {
		return
	}
	if s.Arrivals != nil {
		res.OfferedRate = t.schedule.offered(res.Ended - res.Started)
	}

	why := func(flag *bool, is bool, format string, args ...any) {
		if is {
			*flag = true
			res.Why = append(res.Why, fmt.Sprintf(format, args...))
		}
	}
	ttfb, wait, late := seconds(t.sum.first, 50), seconds(t.sum.wait, 50), seconds(t.sum.late, 99)
	cpus, shard := float64(runtime.NumCPU()), t.late.Seconds()
	why(&res.Saturated, t.busy >= maxBusy, "an event loop was busy %.0f %% of the time", 100*t.busy)
	why(&res.Saturated, res.CPU >= maxCPUShare*cpus*took, "used %.2f of %g CPUs", res.CPU/took, cpus)
	why(&res.Saturated, t.delay >= minRunDelay, "an event loop waited %.0f %% of the time for a CPU", 100*t.delay)
	why(&res.Saturated, wait >= minOwnWait && wait >= maxOwnShare*ttfb, "answers lay ready for %.2g s before they "+
		"were read (median; the median time to the first byte is %.2g s)", wait, ttfb)
	for class, n := range t.sum.local {
		why(&res.Saturated, true, "%d operations failed on this machine: %s", n,
			strings.TrimPrefix(class, classLocalFailure))
	}
	why(&res.Behind, shard > max(maxOwnLate, maxLateStart*took), "started %.2g s after the other generators", shard)
	why(&res.Behind, s.Arrivals != nil && late >= max(maxOwnLate, maxOwnShare*ttfb),
		"operations started %.2g s later than they could have (p99)", late)
}

// receivePath describes how a client received answers and what was compared.
func (t *trial) receivePath(client string) string {
	if t.spec.Receive == receiveDrop {
		s := "drop: " + client + ", MSG_TRUNC + SO_RCVLOWAT, content not compared"
		if t.sum.chunked > 0 {
			s += fmt.Sprintf("; %d chunked answers received by copying, not compared", t.sum.chunked)
		}
		return s
	}
	parts := []string{"verify: " + client + ", pooled buffers"}
	for _, o := range t.spec.Objects {
		with := "content unknown: length checked, not compared"
		if o.Content != nil {
			with = "compared with seeded content (AES-128-CTR)"
		} else if o.Reference != "" {
			with = "compared with a reference file"
		}
		if !slices.Contains(parts, with) {
			parts = append(parts, with)
		}
	}
	return strings.Join(parts, "; ")
}
