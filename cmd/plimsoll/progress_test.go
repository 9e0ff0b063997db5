package main

import (
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/record"
)

// A run that the machine spoilt says what to do about it; one of which it spoilt
// little, or something else did, does not.
func TestBusyMachineIsToldOnce(t *testing.T) {
	quiet, busyBox, late := record.Trial{State: record.Done},
		record.Trial{State: record.Done, Invalid: []string{record.ReasonBoxBusy}},
		record.Trial{State: record.Done, Invalid: []string{record.ReasonGeneratorSaturated}}
	limited := record.Trial{State: record.Done, Invalid: []string{record.ReasonMachineLimited}}
	link, warm := record.Trial{State: record.Done, Invalid: []string{record.ReasonLinkOff}},
		record.Trial{State: record.Done, Warmup: true, Invalid: []string{record.ReasonBoxBusy}}
	for _, c := range []struct {
		scenario string
		trials   []record.Trial
		want     string
	}{
		{"", nil, ""},
		{"", []record.Trial{quiet, quiet, quiet, busyBox, warm, warm}, ""},
		{"", []record.Trial{link, link, quiet}, ""},
		{"", []record.Trial{quiet, quiet, busyBox},
			"too busy for 1 of 3 trials (box-busy): run them again when nothing else uses the CPUs (plimsoll doctor " +
				"checks): plimsoll resume --retry-invalid run; or count them anyway: plimsoll report --set " +
				"limits.others=none run"},
		{"", []record.Trial{limited, busyBox, quiet},
			"plimsoll report --set limits.others=none --set limits.machine=none run"},
		{"", []record.Trial{late, late, quiet},
			"too busy for 2 of 3 trials (generator-saturated): run them again when nothing else uses the CPUs " +
				"(plimsoll doctor checks): plimsoll resume --retry-invalid run"},
		{"upload", []record.Trial{busyBox}, "(box-busy): start a new run"},
	} {
		b := newProgress(nil, &experiment.Plan{Experiment: experiment.Experiment{Scenario: c.scenario}}, "run", false)
		for _, t := range c.trials {
			b.countBusy(t)
		}
		if got := b.busyHint(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.trials, got, c.want)
		}
	}
}
