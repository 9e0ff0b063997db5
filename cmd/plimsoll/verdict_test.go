package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/upload"
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
		{engine.Result{Trials: 1, Valid: 1, Lost: 45, Stopped: stop}, ui.CodeExit,
			"begin a new run with another exit.max_bytes"},
		{engine.Result{Trials: 1, Valid: 1, Lost: 45, WrongBytes: 1}, ui.CodeCorruption, "keep the run directory"},
		{engine.Result{Trials: 1}, ui.CodeInvalid, "validity"},
		{engine.Result{Trials: 1, Valid: 1, Failed: 1}, ui.CodeIncomplete, "plimsoll resume run"},
		{engine.Result{Failed: 2}, ui.CodeInvalid, "validity"},
		{engine.Result{Trials: 1, Valid: 1, Failed: 1, Failing: []string{"a"}}, ui.CodeInvalid, "cause"},
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

// A run ends with 5 when a system answered none of the load's requests, whatever the
// others did.
func TestEveryRequestFailed(t *testing.T) {
	t.Parallel()
	content := make([]byte, 10_000)
	good := serve(t, content, func(*http.Request) bool { return false })
	bad := serve(t, content, func(r *http.Request) bool { return r.UserAgent() == "plimsoll" }) // the load generator
	s := startRun(t, fmt.Sprintf(`
scenario: retrieve
systems:
  - {name: good, use: http, mode: attach, with: {urls: "%s/a"}}
  - {name: bad, use: http, mode: attach, with: {urls: "%s/a"}}

retrieve: {requests: 5, arrivals: {process: constant, rate: 20/s}}
repetitions: 3
`, good, bad))
	code := s.end()
	if !slices.ContainsFunc(s.trials(), func(t record.Trial) bool { return t.Valid() && t.Outcomes["error"] > 0 }) {
		t.Skip("the machine is too busy for a valid trial")
	}
	if code != ui.CodeInvalid {
		t.Errorf("status %d, want %d:\n%s", code, ui.CodeInvalid, s.output())
	}
}

// Gates that do not pass are named.
func TestVerdictOfGates(t *testing.T) {
	pass, open, fail := analysis.Ruling{Rule: "a", State: analysis.GatePass},
		analysis.Ruling{Rule: "b", State: analysis.GateInconclusive, Why: "no cell is meant"},
		analysis.Ruling{Rule: "c", State: analysis.GateFail}
	for _, c := range []struct {
		all   []analysis.Ruling
		want  ui.Code
		names []string
		hint  string
	}{
		{[]analysis.Ruling{pass}, ui.CodeOK, nil, ""},
		{[]analysis.Ruling{pass, open, fail}, ui.CodeGate, []string{"1 of 3", ": c.", ": b."}, ""},
		{[]analysis.Ruling{pass, open}, ui.CodeUndecided, []string{"1 of 2", ": b."},
			"the lines above say why, cell by cell"},
	} {
		err := gateVerdict(c.all)
		if got := ui.ExitCode(err); got != c.want || ui.Hint(err) != c.hint {
			t.Errorf("%+v: status %d, %v, hint %q", c.all, got, err, ui.Hint(err))
		}
		for _, name := range c.names {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%q does not have %q", err, name)
			}
		}
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
		{fmt.Errorf("block 0: %w", upload.ErrDataChanged), ui.CodePreconditions},
	} {
		if got := ui.ExitCode(errors.Join(withStatus(c.err), nil)); got != c.want {
			t.Errorf("%v: status %d, want %d", c.err, got, c.want)
		}
	}
}
