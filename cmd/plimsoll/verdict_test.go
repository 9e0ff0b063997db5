package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/report"
	"github.com/plimsoll-project/plimsoll/scenario"
)

// Each end of a run has its status, the gravest first.
func TestVerdict(t *testing.T) {
	stop := &scenario.Stop{Condition: "max_bytes", Why: "so many"}
	for _, c := range []struct {
		res  engine.Result
		want ui.Code
		hint string
	}{
		{engine.Result{Trials: 1, Valid: 1}, ui.CodeOK, ""},
		{engine.Result{Trials: 1, Valid: 1, Lost: 45}, ui.CodeLost, "report"},
		{engine.Result{Trials: 1, Lost: 45}, ui.CodeLost, "report"},
		{engine.Result{Trials: 1, Valid: 1, Lost: 45, Stopped: stop}, ui.CodeExit, "begin a new run with a higher exit.max_bytes"},
		{engine.Result{Trials: 1, Valid: 1, Lost: 45, WrongBytes: 1}, ui.CodeCorruption, "keep the run directory"},
		{engine.Result{Trials: 1}, ui.CodeInvalid, "validity"},
		{engine.Result{Trials: 1, Valid: 1, Failed: 1}, ui.CodeIncomplete, "plimsoll resume run"},
		{engine.Result{Failed: 2}, ui.CodeInvalid, "validity"},
	} {
		err := verdict(c.res, "run")
		if got := ui.ExitCode(err); got != c.want || !strings.Contains(ui.Hint(err), c.hint) {
			t.Errorf("%+v: status %d, hint %q; want %d, %q", c.res, got, ui.Hint(err), c.want, c.hint)
		}
	}
	if err := verdict(engine.Result{Trials: 1, Lost: 45}, "run"); !strings.Contains(err.Error(), "45 of its objects") {
		t.Error(err)
	}
}

// Gates that do not pass are named, and more repetitions are not asked for where they
// decide nothing.
func TestVerdictOfGates(t *testing.T) {
	pass, open, fail := report.Ruling{Rule: "a", State: report.RulePass}, report.Ruling{Rule: "b", State: report.RuleOpen, Why: "no cell is meant"}, report.Ruling{Rule: "c", State: report.RuleFail}
	for _, c := range []struct {
		all        []report.Ruling
		want       ui.Code
		says, hint string
	}{
		{[]report.Ruling{pass}, ui.CodeOK, "", ""},
		{[]report.Ruling{pass, open, fail}, ui.CodeGate, "1 of 3 gates fails: c; 1 of 3 gates cannot be told: b", ""},
		{[]report.Ruling{pass, open}, ui.CodeUndecided, "no gate fails, but 1 of 2 gates cannot be told: b", "more repetitions alone do not help; the lines above say why, cell by cell"},
	} {
		err := gateVerdict(c.all)
		if got := ui.ExitCode(err); got != c.want || err != nil && err.Error() != c.says || ui.Hint(err) != c.hint {
			t.Errorf("%+v: status %d, %v, hint %q", c.all, got, err, ui.Hint(err))
		}
	}
	if all, some := undecidedHint(true, true), undecidedHint(false, true); !strings.HasSuffix(all, "narrower") || !strings.Contains(some, "not decide all") {
		t.Errorf("%q, %q", all, some)
	}
}

// What trying again does not mend has a status of its own.
func TestStatusOfErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want ui.Code
	}{
		{nil, ui.CodeOK},
		{errors.New("disk full"), ui.CodeInternal},
		{&engine.DeployError{Err: errors.New("no answer")}, ui.CodePreconditions},
		{fmt.Errorf("block 0: %w", &scenario.DataChangedError{System: "s3", How: "1 file removed"}), ui.CodePreconditions},
	} {
		if got := ui.ExitCode(errors.Join(withStatus(c.err), nil)); got != c.want {
			t.Errorf("%v: status %d, want %d", c.err, got, c.want)
		}
	}
}

// A misspelt name in the experiment file is the file's mistake.
func TestStatusOfPreconditions(t *testing.T) {
	for name, want := range map[string]ui.Code{"skip": ui.CodeUsage, "disk-space": ui.CodePreconditions} {
		if got := codeOf(&engine.PreconditionError{Problems: []engine.Problem{{Name: name}}}); got != want {
			t.Errorf("%s: status %d, want %d", name, got, want)
		}
	}
}
