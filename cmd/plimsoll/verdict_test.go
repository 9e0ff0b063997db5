package main

import (
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
