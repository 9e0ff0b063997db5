package engine

import (
	"iter"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/testbed"
)

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
