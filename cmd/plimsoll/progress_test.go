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
			"too busy for 1 of 3 trials; when nothing else uses the CPUs (plimsoll doctor checks), run them again: " +
				"plimsoll resume --retry-invalid run"},
		{"", []record.Trial{late, late, quiet}, "too busy for 2 of 3 trials"},
		{"upload", []record.Trial{busyBox}, "start a new run"},
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
