package engine

import (
	"iter"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
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
	cpus := float64(runtime.NumCPU())
	for name, c := range map[string]struct {
		samples []record.Sample
		want    float64 // CPUs; NaN: unknown
	}{
		"no session":           {nil, math.NaN()},
		"one poll":             {polledOthers(1, 0, 5, 1), math.NaN()},
		"one session":          {polledOthers(1, 0, 100, 0.5), 0.5},
		"busy, then quiet":     {slices.Concat(polledOthers(1, 0, 100, 1), polledOthers(2, 10_000, 10_300, 0)), 0.25},
		"quiet, then busy":     {slices.Concat(polledOthers(1, 0, 300, 0), polledOthers(2, 10_000, 10_100, 1)), 0.25},
		"the same process ID":  {slices.Concat(polledOthers(1, 0, 100, 1), polledOthers(1, 10_000, 10_300, 0)), 0.25},
		"a session of no time": {slices.Concat(polledOthers(1, 0, 100, 1), polledOthers(2, 500, 505, 1), polledOthers(3, 900, 1000, 0)), 0.5},
	} {
		sum, err := recordedOthers(each(c.samples))
		got := sum.share() * cpus
		if err != nil || math.IsNaN(got) != math.IsNaN(c.want) || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: others used %v CPUs, want %v; %v", name, got, c.want, err)
		}
	}
}

// A machine that was busy over a whole load test makes it invalid.
func TestBusyMachineMakesALoadTestInvalid(t *testing.T) {
	some := record.Counts{Ops: 1}
	for busy, want := range map[float64][]string{0.26: {record.ReasonBoxBusy}, 0.24: nil} {
		got := longValidity(experiment.Limits{Others: 0.25}, loaded{usage: scenario.Usage{OthersBusy: busy}}, nil, some, false)
		if !slices.Equal(got, want) {
			t.Errorf("%g: %v, want %v", busy, got, want)
		}
	}
	if got := longValidity(experiment.Limits{Others: 0.25}, loaded{usage: scenario.Usage{OthersBusy: math.NaN()}}, nil, some, false); got != nil {
		t.Errorf("nothing is known: %v", got)
	}
}
