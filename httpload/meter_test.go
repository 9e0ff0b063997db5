package httpload

import (
	"runtime"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/workload"
)

func TestSaturation(t *testing.T) {
	const second = 1_000_000_000
	type what struct {
		busy, delay float64
		sum         func(*tally)
		cpu         float64
		open        bool
	}
	fast := func(s *tally) { // answers within 1 ms, read within 10 µs
		for range 100 {
			observe(s.first, second/1000)
			observe(s.wait, second/100_000)
		}
	}
	for name, test := range map[string]struct {
		what
		saturated, behind bool
		why               string
	}{
		"idle":      {what{busy: 0.3, delay: 0.01, cpu: 0.3, sum: fast}, false, false, ""},
		"busy loop": {what{busy: 0.97, cpu: 0.5, sum: fast}, true, false, "busy 97 %"},
		"all CPUs": {what{busy: 0.5, cpu: 0.95 * float64(runtime.NumCPU()), sum: fast}, true, false,
			"CPUs"},
		"no CPU for it": {what{busy: 0.5, delay: 0.4, cpu: 0.1, sum: fast}, true, false,
			"waited 40 %"},
		"late reads": {what{sum: func(s *tally) { fast(s); s.wait.Reset(); observe(s.wait, second/100) }}, true,
			false, "lay ready for 0.01 s"},
		"late, slow net": {what{sum: func(s *tally) { observe(s.first, 10*second); observe(s.wait, second/100) }},
			false, false, ""},
		"late starts": {what{open: true, sum: func(s *tally) { fast(s); observe(s.late, second/10) }}, false, true,
			"later than they could"},
		"no ports": {what{sum: func(s *tally) { fast(s); s.local[classNoPort] = 3 }}, true, false,
			"3 operations failed on this machine: no free port"},
	} {
		tr := &trial{spec: &Spec{}, schedule: &schedule{}, cpuEnded: test.cpu,
			sum: newTally(newRecorder(new(ops).Ops, nil), &linkUse{})}
		if test.open {
			tr.spec.Arrivals = &workload.ArrivalSpec{}
		}
		test.sum(tr.sum)
		tr.busy, tr.delay = test.busy, test.delay
		res := Result{Ended: second}
		tr.conclude(&res)
		why := strings.Join(res.Why, "; ")
		if res.Saturated != test.saturated || res.Behind != test.behind || !strings.Contains(why, test.why) {
			t.Errorf("%s: saturated %v, behind %v: %s", name, res.Saturated, res.Behind, why)
		}
	}
}
