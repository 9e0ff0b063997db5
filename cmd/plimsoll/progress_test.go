package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
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
			"plimsoll report --set limits.machine=none --set limits.others=none run"},
		{"", []record.Trial{late, late, quiet},
			"too busy for 2 of 3 trials (generator-saturated): run them again when nothing else uses the CPUs " +
				"(plimsoll doctor checks): plimsoll resume --retry-invalid run; or ask for less"},
		{"", []record.Trial{late, busyBox, quiet}, "(generator-saturated, box-busy)"},
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

// An invalid trial has the number in the terminal that it has in the record and on
// the page; blocks are counted otherwise there.
func TestInvalidTrialsAreNumbered(t *testing.T) {
	var out, err bytes.Buffer
	p := newProgress(ui.New(&out, &err), &experiment.Plan{Warmup: 1, Blocks: 2}, "", false)
	cell := experiment.Cell{ID: "c001", System: "fanout",
		Factors: []experiment.Factor{{Path: "system", Value: "fanout"}}}
	p.Begin(7, 9, cell, -1, true)
	p.End(record.Trial{ID: 7, Cell: "c001", Block: -1, Warmup: true, State: record.Done, Invalid: []string{"box-busy"}},
		cell)
	p.End(record.Trial{ID: 8, Cell: "c001", State: record.Done, Invalid: []string{"box-busy"}}, cell)
	got := out.String() + err.String()
	for _, want := range []string{"warm-up trial 7 (fanout) is invalid: box-busy",
		"\ntrial 8 (fanout) is invalid: box-busy"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if n := strings.Count(got, record.Meaning(record.ReasonBoxBusy)); n != 1 || strings.Contains(got, "block 0") {
		t.Errorf("the reason is explained %d times: %q", n, got)
	}
}
