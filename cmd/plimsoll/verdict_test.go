package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/internal/ui"
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
