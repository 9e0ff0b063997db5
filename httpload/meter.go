package httpload

import (
	"fmt"
	"strings"

	"github.com/plimsoll-project/plimsoll/record"
)

// When the generator counts as the limit. The shares are of wall time; the
// latencies are compared with what was measured, because a wait of 1 ms is
// nothing in an answer of 1 s and everything in one of 1 ms.
const (
	maxBusy      = 0.9  // of an event loop's time spent not waiting for the network
	maxCPUShare  = 0.9  // of the CPUs this process may use
	maxOwnShare  = 0.25 // of the median time to the first byte that may be our own wait
	minOwnWait   = 1e-3 // seconds; below, a wait is not worth a word
	maxOwnLate   = 5e-3 // seconds; an open loop's own lateness at p99, or that of a shard's start
	maxLateStart = 0.01 // share of the time by which a shard may start late
	minRunDelay  = 0.2  // share of the time spent waiting for a CPU
)

const loopClosed, loopOpen = "closed", "open"

// conclude derives rates and judges the generator itself.
func (t *trial) conclude(res *Result) {
	s := t.spec
	res.Loop = loopClosed
	if s.Arrivals != nil {
		res.Loop = loopOpen
	}
	res.Receive = t.receivePath(res)
	res.Lag, res.Late, res.Wait = quantiles(t.sum.lag), quantiles(t.sum.late), quantiles(t.sum.wait)
	res.CPU = t.cpuEnded - t.cpuBegan
	res.MaxRSS = peakRSS()

	took := float64(res.Ended-res.Started) / 1e9
	if took <= 0 {
		return
	}
	finished := int64(0)
	for _, o := range record.Outcomes() {
		if o.Finished() {
			finished += res.Outcomes[o.String()]
		}
	}
	res.AchievedRate = float64(finished) / took
	res.OfferedRate = res.AchievedRate
	if s.Arrivals != nil {
		res.OfferedRate = t.schedule.offered(res.Ended - res.Started)
	}

	why := func(flag *bool, format string, args ...any) {
		*flag = true
		res.Why = append(res.Why, fmt.Sprintf(format, args...))
	}
	ttfb := quantiles(t.sum.first).P50
	if res.Busy >= maxBusy {
		why(&res.Saturated, "an event loop was busy %.0f %% of the time", 100*res.Busy)
	}
	if cpus := usableCPUs(); res.CPU >= maxCPUShare*float64(cpus)*took {
		why(&res.Saturated, "used %.2f of %d CPUs", res.CPU/took, cpus)
	}
	if res.RunDelay >= minRunDelay {
		why(&res.Saturated, "an event loop waited %.0f %% of the time for a CPU", 100*res.RunDelay)
	}
	if w := res.Wait.P50; w >= minOwnWait && w >= maxOwnShare*ttfb {
		why(&res.Saturated, "answers lay ready for %.2g s before they were read (median; the median time to the "+
			"first byte is %.2g s)", w, ttfb)
	}
	for class, n := range res.Classes {
		if strings.HasPrefix(class, classLocalFailure) {
			why(&res.Saturated, "%d operations failed on this machine: %s", n,
				strings.TrimPrefix(class, classLocalFailure))
		}
	}
	if late := t.late.Seconds(); late > max(maxOwnLate, maxLateStart*took) {
		why(&res.Behind, "started %.2g s after the other generators", late)
	}
	if s.Arrivals != nil && res.Late.P99 >= max(maxOwnLate, maxOwnShare*ttfb) {
		why(&res.Behind, "operations started %.2g s later than they could have (p99)", res.Late.P99)
	}
}

// receivePath names how answers were received and what was compared.
func (t *trial) receivePath(res *Result) string {
	if t.spec.Receive == receiveDrop {
		s := "drop: raw http/1.1, MSG_TRUNC + SO_RCVLOWAT, content not compared"
		if res.Chunked > 0 {
			s += fmt.Sprintf("; %d chunked answers received by copying, not compared", res.Chunked)
		}
		return s
	}
	how := "raw http/1.1"
	if res.Threads == 0 {
		how = "net/http " + res.Protocol
	}
	var seeded, files, unknown bool
	for i := range t.spec.Objects {
		o := &t.spec.Objects[i]
		switch {
		case o.Content != nil:
			seeded = true
		case o.Reference != "":
			files = true
		default:
			unknown = true
		}
	}
	var with []string
	for _, w := range []struct {
		is   bool
		what string
	}{{seeded, "compared with seeded content (AES-128-CTR)"}, {files, "compared with a reference file"},
		{unknown, "content unknown: length checked, not compared"}} {
		if w.is {
			with = append(with, w.what)
		}
	}
	return "verify: " + how + ", pooled buffers, " + strings.Join(with, "; ")
}
