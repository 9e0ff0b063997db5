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

// A process that is killed and started again is counted whole, and the window
// alone counts.
func TestMeterOfASwarm(t *testing.T) {
	m := newMeter(&site{})
	m.system["n1"], m.system["n2"] = true, true
	m.nodes = [][]string{{"n1"}, {"n2"}, {"unseen"}}
	poll := func(when float64, pid1 int, cpu1, cpu2, self, emulator float64) []record.Sample {
		end := time.Duration(when * float64(time.Second))
		of := func(name, role string, pid int, cpu, rss float64) record.Sample {
			return record.Sample{Start: end, End: end, Process: name, Role: role, PID: pid, CPU: cpu, RSS: rss}
		}
		return []record.Sample{
			of("n1", "system", pid1, cpu1, 10*cpu1), of("n2", "system", 9, cpu2, 7),
			of("link", "emulator", 3, emulator, 1), of(testbed.SelfSample, testbed.RoleEngine, 1, self, 1), of(testbed.BoxSample, testbed.RoleBox, 0, 10*self, 1),
		}
	}
	m.add(poll(0, 5, 100, 100, 100, 100)) // before the window
	m.begin(poll(10, 5, 1, 20, 50, 60))
	m.add(poll(11, 5, 3, 20, 50, 60))   // 2 s
	m.add(poll(12, 6, 0.5, 21, 50, 60)) // another process: 0.5 s
	m.add(poll(13, 6, 1.5, 22, 50, 60)) // 1 s
	m.end(poll(14, 6, 1.5, 23, 50.4, 61))
	m.add(poll(15, 6, 90, 90, 90, 90))
	u := m.usage()
	if len(u.Nodes) != 3 || u.Nodes[0].CPU != 3.5 || u.Nodes[1].CPU != 3 || u.Nodes[0].RSSPeak != 30 || !math.IsNaN(u.Nodes[2].CPU) {
		t.Errorf("nodes %+v", u.Nodes)
	}
	box := 4 * float64(runtime.NumCPU())
	if u.SystemCPU != 6.5 || math.Abs(u.HarnessCPU-0.4/box) > 1e-9 || math.Abs(u.EmulatorCPU-1/box) > 1e-9 || math.Abs(u.BoxCPU-7.9/box) > 1e-9 /* 4 by the machine's ticks, 7.9 by the processes' accounts */ {
		t.Errorf("usage %+v", u)
	}
	if u := newMeter(&site{}).usage(); !math.IsNaN(u.HarnessCPU) || !math.IsNaN(u.EmulatorCPU) || u.Nodes != nil {
		t.Errorf("nothing observed gives %+v", u)
	}
}
