package engine

import (
	"iter"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/testbed"
)

func TestMeterTakesDifferencesOfTheLoadedSystemOnly(t *testing.T) {
	m := newMeter(&site{}, nil)
	m.ours["static-a"] = placed{node: -1}
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
			{Start: start, End: end, Process: testbed.ThrottledSample, CPU: 1 + 0.25*when},
			{Start: start, End: end, Process: testbed.SelfSample},
		})
	}
	poll(0, 10, 50, 3)
	poll(1, 11, 90, 3)
	poll(2, 12.5, 60, 3+0.2*2*float64(runtime.NumCPU()))
	u := m.usage()
	if u.SystemCPU != 2.5 || u.SystemRSSPeak != 90 {
		t.Errorf("CPU %g s, peak %g B; want 2.5 and 90", u.SystemCPU, u.SystemRSSPeak)
	}
	if notes, throttled := m.notes(); !throttled || !slices.Equal(notes, []string{"a CPU limit held back the " +
		"client's machine in periods that make 25 % of the time"}) {
		t.Errorf("%t, %q", throttled, notes)
	}
	if notes, throttled := newMeter(&site{}, nil).notes(); throttled || notes != nil {
		t.Errorf("nothing observed gives %t, %q", throttled, notes)
	}
	if u := newMeter(&site{}, nil).usage(); !math.IsNaN(u.SystemCPU) || !math.IsNaN(u.OthersBusy) ||
		!math.IsNaN(u.HarnessCPU) || !math.IsNaN(u.EmulatorCPU) || !math.IsNaN(u.IOPressure) ||
		!math.IsNaN(u.BusiestCPU) || u.Nodes != nil {
		t.Errorf("nothing observed gives %+v, want nothing", u)
	}
}

// A process that is killed and started again is counted whole, and the window
// alone counts.
func TestMeterOfASwarm(t *testing.T) {
	m := newMeter(&site{}, nil)
	m.nodes = 3
	m.trace = nodesAre(traced{account: account{"n1", 5}}, traced{account: account{"n2", 9}, placed: placed{node: 1}},
		traced{account: account{"unseen", 1}, placed: placed{node: 2}})
	poll := func(when float64, pid1 int, cpu1, cpu2, self, emulator float64) []record.Sample {
		end := time.Duration(when * float64(time.Second))
		of := func(name, role string, pid int, cpu, rss float64) record.Sample {
			return record.Sample{Start: end, End: end, Process: name, Role: role, PID: pid, CPU: cpu, RSS: rss}
		}
		return []record.Sample{
			of("n1", "system", pid1, cpu1, 10*cpu1), of("n2", "system", 9, cpu2, 7),
			of("link", "emulator", 3, emulator, 1), of(testbed.SelfSample, testbed.RoleEngine, 1, self, 1),
			of(testbed.BoxSample, testbed.RoleBox, 0, 10*self, 1),
		}
	}
	waited := 100.0
	m.pressure = func() float64 { waited += 0.25; return waited } // at each look
	m.add(poll(0, 5, 100, 100, 100, 100))                         // before the window
	m.begin(poll(10, 5, 1, 20, 50, 60))
	m.add(poll(11, 5, 3, 20, 50, 60))   // 2 s
	m.add(poll(12, 6, 0.5, 21, 50, 60)) // another process: 0.5 s
	m.add(poll(13, 6, 1.5, 22, 50, 60)) // 1 s
	m.end(poll(14, 6, 1.5, 23, 50.4, 61))
	m.add(poll(15, 6, 90, 90, 90, 90))
	u := m.usage()
	if len(u.Nodes) != 3 || u.Nodes[0].CPU != 3.5 || u.Nodes[1].CPU != 3 || u.Nodes[0].RSSPeak != 30 ||
		!math.IsNaN(u.Nodes[2].CPU) {
		t.Errorf("nodes %+v", u.Nodes)
	}
	box := 4 * float64(runtime.NumCPU())
	if u.SystemCPU != 6.5 || math.Abs(u.HarnessCPU-0.4/box) > 1e-9 || math.Abs(u.EmulatorCPU-1/box) > 1e-9 ||
		math.Abs(u.BoxCPU-7.9/box) > 1e-9 /* 4 by the machine's ticks, 7.9 by the processes' accounts */ {
		t.Errorf("usage %+v", u)
	}
	if math.Abs(u.IOPressure-0.25) > 1e-9 || math.Abs(u.BusiestCPU-3.5/4) > 1e-9 {
		t.Errorf("waited for storage %g of the time, the busiest kept %g CPUs busy; want 0.25 and 0.875", u.IOPressure,
			u.BusiestCPU)
	}
}

// Between machines each has an emulator: what another's uses is that machine's, not the client's.
func TestMeterOfEmulatorsElsewhere(t *testing.T) {
	m := newMeter(&site{}, nil)
	m.machines = append(m.machines, otherMachine{name: "b", cpus: 2})
	m.threadCPU = func(pid int) map[int]float64 { return map[int]float64{pid: float64(m.at/time.Second) * float64(pid)} }
	for at := range 3 {
		now := time.Duration(at) * time.Second
		of := func(name, role string, pid int, cpu float64) record.Sample {
			return record.Sample{Start: now, End: now, Process: name, Role: role, PID: pid, CPU: cpu * float64(at)}
		}
		m.add([]record.Sample{
			of("link@b", testbed.RoleEmulator, 7, 1.5), of("link", testbed.RoleEmulator, 1, 0.01),
			of(testbed.BoxSample+"@b", testbed.RoleBox, 0, 0.1), of(testbed.BoxSample, testbed.RoleBox, 0, 0.01),
			of(testbed.SelfSample, testbed.RoleEngine, 2, 0),
		})
	}
	u := m.usage()
	if want := 0.01 / float64(runtime.NumCPU()); math.Abs(u.EmulatorCPU-want) > 1e-9 ||
		math.Abs(u.BoxCPU-0.75) > 1e-9 || u.EmulatorThread != 1 {
		t.Errorf("emulator %g of the client's machine, want %g; the busiest machine %g, want 0.75; thread %g, want 1",
			u.EmulatorCPU, want, u.BoxCPU, u.EmulatorThread)
	}
}

func nodesAre(all ...traced) func() []traced {
	for i := range all {
		if all[i].peak == nil {
			all[i].peak = func() float64 { return math.NaN() }
		}
	}
	return func() []traced { return all }
}

// A fresh node is started within the window: all that it uses is the window's, also
// before it is first seen, and the highest it ever held, which no look has seen. A
// peer that goes on counts from the window's begin, one that took the place of
// another likewise, and one that came and went between two looks is not lost.
func TestMeterOfProcessesThatComeAndGo(t *testing.T) {
	m := newMeter(&site{}, nil)
	m.nodes = 3
	of := func(name string, pid, node int, peak float64) traced {
		return traced{account{name, pid}, placed{node: node}, func() float64 { return peak }}
	}
	procs := []traced{of("peer", 10, 1, 1e9), of("late", 11, 2, 1e9)}
	m.trace = func() []traced { return procs }
	at := 0.0
	look := func(samples ...record.Sample) []record.Sample {
		at++
		for i := range samples {
			samples[i].Role, samples[i].Start, samples[i].End = "system", time.Duration(at*1e9), time.Duration(at*1e9)
		}
		return samples
	}
	of4 := func(name string, pid int, cpu, rss, read, written float64) record.Sample {
		return record.Sample{Process: name, PID: pid, CPU: cpu, RSS: rss, ReadBytes: read, WriteBytes: written}
	}
	m.add(look(of4("peer", 10, 50, 500, 0, 0), of4("late", 11, 9, 90, 1, 1)))
	// Another has taken the place of one that ended just before: both are told.
	procs = append(procs, of("late", 12, 2, 1e9))
	m.begin(look(of4("late", 11, 10, 0, 1, 1), of4("peer", 10, 51, 500, 0, 7), of4("late", 12, 3, 30, 5, 5)))
	procs = append(procs, of("fresh", 20, 0, 700))
	m.add(look(of4("peer", 10, 52, 500, 0, 7), of4("late", 12, 4, 31, 5, 6), of4("fresh", 20, 2, 200, 10, 1000)))
	stale := look(of4("fresh", 20, 1, 9999, 1, 1))
	stale[0].End = time.Duration(1.5e9)
	m.add(stale) // of before: two polls have overtaken each other
	// It was killed; the one that took its place came and went before the next look.
	procs = append(procs, of("fresh", 21, 0, 650), of("fresh", 22, 0, 300))
	m.end(look(of4("fresh", 20, 2.5, 0, 10, 1500), of4("fresh", 21, 0.25, 0, 1, 100), of4("peer", 10, 52.5, 400, 0, 8),
		of4("late", 12, 5, 31, 5, 6), of4("fresh", 22, 1, 300, 0, 50)))
	m.add(look(of4("fresh", 22, 100, 1e12, 1e12, 1e12)))
	u := m.usage()
	want := []scenario.NodeUsage{
		{CPU: 2.5 + 0.25 + 1, RSSPeak: 700, Written: 1650},
		{CPU: 1.5, RSSPeak: 500, Written: 1},
		{CPU: 2, RSSPeak: 31, Written: 1},
	}
	for i, n := range u.Nodes {
		if n != want[i] {
			t.Errorf("node %d: %+v, want %+v", i, n, want[i])
		}
	}
	if len(u.Nodes) != 3 || u.SystemCPU != 3.75+1.5+2 {
		t.Errorf("usage %+v", u)
	}
}

// Whoever listens at an address of an attached system has one account, whatever its
// process id.
func TestMeterOfAnAttachedServer(t *testing.T) {
	m := newMeter(&site{watched: map[string]bool{"a@127.0.0.1:80": true}}, nil)
	for i, pid := range []int{7, 7, 3, 0} {
		at := time.Duration(i) * time.Second
		m.add([]record.Sample{{Start: at, End: at, Process: "a@127.0.0.1:80", PID: pid, CPU: 100 + float64(i), RSS: 1}})
	}
	if u := m.usage(); u.SystemCPU != 3 {
		t.Errorf("usage %+v", u)
	}
}

// polledOthers are samples of one session: others use so many CPU seconds in each
// second, counted from 0.
func polledOthers(pid int, from, to, each float64) (all []record.Sample) {
	for at := from; at <= to; at += 10 {
		end := time.Duration(at * float64(time.Second))
		all = append(all,
			record.Sample{Process: testbed.BoxSample, CPU: 1e6 + at, End: end},
			record.Sample{Process: testbed.OthersSample, CPU: (at - from) * each, End: end},
			record.Sample{Process: testbed.SelfSample, PID: pid, End: end})
	}
	return all
}

func each(samples []record.Sample) iter.Seq2[record.Sample, error] {
	return func(yield func(record.Sample, error) bool) {
		for _, s := range samples {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// What others use is weighted by the time of the sessions; the time between them
// does not count, whatever the counters say.
func TestOthersOverSessions(t *testing.T) {
	for name, c := range map[string]struct {
		samples []record.Sample
		want    float64 // CPUs; NaN: unknown
	}{
		"no session":          {nil, math.NaN()},
		"one poll":            {polledOthers(1, 0, 5, 1), math.NaN()},
		"one session":         {polledOthers(1, 0, 100, 0.5), 0.5},
		"busy, then quiet":    {slices.Concat(polledOthers(1, 0, 100, 1), polledOthers(2, 10_000, 10_300, 0)), 0.25},
		"quiet, then busy":    {slices.Concat(polledOthers(1, 0, 300, 0), polledOthers(2, 10_000, 10_100, 1)), 0.25},
		"the same process ID": {slices.Concat(polledOthers(1, 0, 100, 1), polledOthers(1, 10_000, 10_300, 0)), 0.25},
		"a session of no time": {slices.Concat(polledOthers(1, 0, 100, 1), polledOthers(2, 500, 505, 1),
			polledOthers(3, 900, 1000, 0)), 0.5},
	} {
		sum, err := recordedOthers(each(c.samples))
		got := sum[testbed.OthersSample].share(1)
		if err != nil || math.IsNaN(got) != math.IsNaN(c.want) || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: others used %v CPUs, want %v; %v", name, got, c.want, err)
		}
	}
}

// CPU that is counted in ticks says nothing over 56 ms, in which others seemed to use
// 379 % of the machine.
func TestOthersOverTooShortATime(t *testing.T) {
	const cpus = 2
	for wall, want := range map[time.Duration]float64{56 * time.Millisecond: math.NaN(), time.Second: 1,
		4 * time.Second: 3.79 * 0.056 / 4} {
		got := othersUsed{3.79 * 0.056 * cpus, wall}.share(cpus)
		if wall == time.Second {
			got = othersUsed{1.2 * cpus, wall}.share(cpus)
		}
		if math.IsNaN(got) != math.IsNaN(want) || math.Abs(got-want) > 1e-9 {
			t.Errorf("over %s: %v, want %v", wall, got, want)
		}
	}
}

// Of several machines the one counts of whose CPUs others used the largest share.
func TestTheBusiestMachineCounts(t *testing.T) {
	ours, far := otherMachine{cpus: 2}, otherMachine{name: "far", cpus: 8}
	samples := slices.Concat(polledOthers(1, 0, 100, 0.5), polledOthers(2, 500, 600, 0.5))
	for i := range samples {
		if samples[i].Process == testbed.BoxSample { // two of its eight CPUs in the first session
			samples[i].Process, samples[i].CPU = testbed.OfMachine(testbed.OthersSample, far),
				min(2*samples[i].End.Seconds(), 200)
		}
	}
	used, err := recordedOthers(each(samples))
	must(t, err)
	for _, c := range []struct {
		machines []testbed.Machine
		share    float64
		worst    testbed.Machine
	}{
		{[]testbed.Machine{ours, far}, 0.25, ours},
		{[]testbed.Machine{otherMachine{cpus: 8}, far}, 0.125, far},
		{[]testbed.Machine{otherMachine{name: "unknown", cpus: 8}}, math.NaN(), nil},
	} {
		share, worst := used.worst(c.machines)
		if math.IsNaN(share) != math.IsNaN(c.share) || math.Abs(share-c.share) > 1e-9 || worst != c.worst {
			t.Errorf("%v: %v of %v, want %v of %v", c.machines, share, worst, c.share, c.worst)
		}
	}
}

// Trials too short for the kernel's ticks are judged by a window that ends with them.
func TestShortTrialsAreJudgedByAWindow(t *testing.T) {
	epoch := time.Now()
	const cpus = 2
	sample := func(seconds, share float64) record.Sample { // of others that use a constant share
		return record.Sample{Process: testbed.OthersSample, End: time.Duration(seconds * 1e9),
			CPU: seconds * share * cpus}
	}
	r := recentOthers{}
	trial := func(from, to, share float64) float64 {
		r.add(epoch, sample(from, share), sample(to, share))
		return r.window()[testbed.OthersSample].share(cpus)
	}
	if got := trial(0, 0.6, 0.5); !math.IsNaN(got) {
		t.Errorf("the first trial, 0.6 s: %v", got)
	}
	if got := trial(0.7, 1.3, 0.5); math.Abs(got-0.5) > 1e-9 {
		t.Errorf("the second: %v, want 0.5", got)
	}
	if got := trial(60, 60.6, 0.5); !math.IsNaN(got) {
		t.Errorf("a minute later: %v", got)
	}
	for i := range 200 {
		from := 61 + float64(i)
		if got := trial(from, from+0.5, 0.25); i > 2 && math.Abs(got-0.25) > 1e-9 {
			t.Fatalf("trial %d: %v, want 0.25", i, got)
		}
	}
	if len(r[testbed.OthersSample]) > 64 {
		t.Errorf("%d counts are kept", len(r[testbed.OthersSample]))
	}
}
