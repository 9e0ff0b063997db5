package engine

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func TestMeterTakesDifferencesOfTheLoadedSystemOnly(t *testing.T) {
	m := newMeter(&site{})
	m.system["static-a"] = true
	at := func(s float64) (time.Duration, time.Duration) {
		d := time.Duration(s * float64(time.Second))
		return d, d + time.Millisecond
	}
	poll := func(when, cpu, rss, others float64) {
		start, end := at(when)
		m.add([]record.Sample{
			{Start: start, End: end, Process: "static-a", Role: "system", CPU: cpu, RSS: rss},
			{Start: start, End: end, Process: "static-idle", Role: "system", CPU: 100 * cpu, RSS: 1e12},
			{Start: start, End: end, Process: testbed.OthersSample, CPU: others},
		})
	}
	poll(0, 10, 50, 3)
	poll(1, 11, 90, 3)
	poll(2, 12.5, 60, 3+0.2*2*float64(runtime.NumCPU()))
	u := m.usage()
	if u.SystemCPU != 2.5 || u.SystemRSSPeak != 90 {
		t.Errorf("CPU %g s, peak %g B; want 2.5 and 90", u.SystemCPU, u.SystemRSSPeak)
	}
	if math.Abs(u.OthersBusy-0.2) > 1e-9 {
		t.Errorf("others used %g of the machine, want 0.2", u.OthersBusy)
	}
	if u := newMeter(&site{}).usage(); !math.IsNaN(u.SystemCPU) || !math.IsNaN(u.OthersBusy) {
		t.Errorf("nothing observed gives %+v, want nothing", u)
	}
}
