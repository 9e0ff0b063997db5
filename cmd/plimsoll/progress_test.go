package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/experiment"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
)

// An invalid trial has the number in the terminal that it has in the record and on
// the page; blocks are counted otherwise there.
func TestInvalidTrialsAreNumbered(t *testing.T) {
	var out, err bytes.Buffer
	p := newProgress(ui.New(&out, &err), &experiment.Plan{Warmup: 1, Blocks: 2}, "", false)
	cell := experiment.Cell{ID: "c001", System: "fanout", Factors: []experiment.Factor{{Path: "system", Value: "fanout"}}}
	p.Begin(7, 9, cell, -1, true)
	p.End(record.Trial{ID: 7, Cell: "c001", Block: -1, State: record.Done, Invalid: []string{"box-busy"}}, cell)
	if got := out.String() + err.String(); !strings.Contains(got, "trial 7 (fanout) is invalid: box-busy") || strings.Contains(got, "block 0") {
		t.Errorf("said %q", got)
	}
}
