package all

import (
	"slices"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/upload"
)

// Each metric of a trial is completely defined.
func TestMetricsAreDefined(t *testing.T) {
	for _, s := range All() {
		seen := map[string]bool{}
		for _, m := range s.Metrics() {
			known := m.Better == record.Higher || m.Better == record.Lower || m.Better == record.Neither
			if seen[m.Key] || m.Key == "" || m.Name == "" || m.Unit == "" || m.Help == "" || !known {
				t.Errorf("%s: %+v", s.Name(), m)
			}
			seen[m.Key] = true
		}
	}
}

// Reports derive from the machine's metrics what limited a trial: each scenario that measures a
// system's speed measures and defines them.
func TestMachineIsMeasuredInEveryScenario(t *testing.T) {
	cell := experiment.Cell{Retrieve: &experiment.Retrieve{}, Overhead: &experiment.Overhead{},
		Upload: &experiment.Upload{}, Disseminate: &experiment.Disseminate{}, Sync: &experiment.Sync{}}
	details := scenario.Details(scenario.Load{}, scenario.Usage{BoxCPU: 0.97, EmulatorThread: 0.5, BusiestCPU: 1,
		IOPressure: 0.9}, nil, false)
	for _, s := range All() {
		if s.Name() == (upload.Collect{}).Name() {
			continue // it applies no load that could be limited
		}
		m := s.Measure(scenario.Measured{Cell: cell, Summary: record.NewSummary(),
			Ops: slices.Values([]record.Op{}), Jobs: slices.Values([]record.Job{}),
			Polls: slices.Values([]record.Poll{}), Events: slices.Values([]record.Event{}),
			Load: scenario.Load{Details: details}})
		told := map[string]bool{}
		for _, d := range s.Metrics() {
			told[d.Key] = true
		}
		want := map[string]float64{"box_cpu": 0.97, "emulator_thread": 0.5, "io_pressure": 0.9}
		if s.Name() != "disseminate" && s.Name() != "sync" { // these two have the CPU of each node
			want["busiest_cpu"] = 1
		}
		for key, v := range want {
			if m[key] != v || !told[key] {
				t.Errorf("%s: %s is %v, told: %v", s.Name(), key, m[key], told[key])
			}
		}
	}
}
