package scenario

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// Load and usage are restored from the details, with NaN as NaN.
func TestFactsComeBack(t *testing.T) {
	unknown := math.NaN()
	load := Load{
		Seconds: 1.5, Warmed: 2, CPU: 0.25, RSSPeak: 3, OfferedRate: 4,
		Links: make([]record.LinkCheck, 2), Details: []record.Detail{{Kind: record.DetailPhase, Name: "connect",
			Value: 7}},
	}
	usage := Usage{
		SystemCPU: 1, SystemRSSPeak: 2, OthersBusy: 0, HarnessCPU: unknown, BoxCPU: 5, EmulatorCPU: 6,
		EmulatorThread: unknown, BusiestCPU: 8, IOPressure: 9,
		Nodes: []NodeUsage{{1, 2, 3}, {unknown, unknown, unknown}, {5, 6, 7}},
	}
	details := Details(load, usage, []string{"a-01", "a-02", "a-03"}, true)
	var in Measured
	in.restore(details)
	if in.LoadDetail(loadLinks) != 2 || !in.TLS {
		t.Errorf("%v links, TLS %v", in.LoadDetail(loadLinks), in.TLS)
	}
	load.Links, load.Details = nil, details
	if !reflect.DeepEqual(in.Load, load) {
		t.Errorf("load %+v, want %+v", in.Load, load)
	}
	if got, want := fmt.Sprint(in.Usage), fmt.Sprint(usage); got != want { // NaN is not equal to itself
		t.Errorf("usage %s, want %s", got, want)
	}
	if _, err := Recompute(nil, nil, record.Trial{Details: details[:1]}, experiment.Cell{}, nil); !errors.Is(err,
		ErrNoFacts) {
		t.Errorf("an old trial: %v", err)
	}
}
