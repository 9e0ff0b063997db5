package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/plimsoll-project/plimsoll/analysis"
	"github.com/plimsoll-project/plimsoll/engine"
	"github.com/plimsoll-project/plimsoll/internal/ui"
	"github.com/plimsoll-project/plimsoll/record"
	"github.com/plimsoll-project/plimsoll/scenario"
	"github.com/plimsoll-project/plimsoll/scenario/upload"
)

// Each end of a run has its status, the gravest first; gates that do not pass are named, and what trying again does
// not mend has a status of its own.
func TestVerdict(t *testing.T) {
	stop := &scenario.Stop{Condition: "max_bytes", Why: "so many"}
	pass, open, fail := analysis.Ruling{Rule: "a", State: analysis.GatePass},
		analysis.Ruling{Rule: "b", State: analysis.GateInconclusive, Why: "no cell is meant"},
		analysis.Ruling{Rule: "c", State: analysis.GateFail}
	of := func(res engine.Result) error { return verdict(res, "run") }
	for _, c := range []struct {
		err  error
		want ui.Code
		hint string // empty: there is none
		says []string
	}{
		{of(engine.Result{Trials: 1, Valid: 1}), ui.CodeOK, "", nil},
		{of(engine.Result{Trials: 1, Valid: 1, LostObjects: 45}), ui.CodeLost, "report", nil},
		{of(engine.Result{Trials: 1, LostObjects: 45}), ui.CodeLost, "report", []string{"45 objects"}},
		{of(engine.Result{Trials: 1, Valid: 1, LostObjects: 45, Stopped: stop}), ui.CodeExit,
			"exit.max_bytes", nil},
		{of(engine.Result{Trials: 1, Valid: 1, LostObjects: 45, WrongBytes: 1}), ui.CodeCorruption, "keep the run directory",
			nil},
		{of(engine.Result{Trials: 1}), ui.CodeInvalid, "validity", nil},
		{of(engine.Result{Trials: 1, Valid: 1, Failed: 1}), ui.CodeIncomplete, "plimsoll resume run", nil},
		{of(engine.Result{Failed: 2}), ui.CodeInvalid, "validity", nil},
		{of(engine.Result{Trials: 1, Valid: 1, Failed: 1, Failing: []string{"a"}}), ui.CodeInvalid, "cause", nil},

		{gateVerdict([]analysis.Ruling{pass}), ui.CodeOK, "", nil},
		{gateVerdict([]analysis.Ruling{pass, open, fail}), ui.CodeGate, "", []string{"1 of 3", ": c.", ": b."}},
		{gateVerdict([]analysis.Ruling{pass, open}), ui.CodeUndecided, "cell by cell", []string{"1 of 2", ": b."}},

		{withStatus(nil), ui.CodeOK, "", nil},
		{withStatus(errors.New("disk full")), ui.CodeInternal, "", nil},
		{withStatus(fmt.Errorf("block 0: %w", upload.ErrDataChanged)), ui.CodePreconditions, "", nil},
	} {
		hint := ui.Hint(c.err)
		if got := ui.ExitCode(c.err); got != c.want || !strings.Contains(hint, c.hint) || c.hint == "" && hint != "" {
			t.Errorf("%v: status %d, hint %q; want %d, %q", c.err, got, hint, c.want, c.hint)
		}
		for _, part := range c.says {
			if !strings.Contains(c.err.Error(), part) {
				t.Errorf("%q does not have %q", c.err, part)
			}
		}
	}
}

// A run ends with 5 when a system answered none of the load's requests, whatever the
// others did.
func TestEveryRequestFailed(t *testing.T) {
	t.Parallel()
	content := make([]byte, 10_000)
	good := serve(t, content, func(*http.Request) bool { return false })
	var fetched atomic.Bool // the load generator makes one request for the copy to compare with, and then the load's
	bad := serve(t, content, func(r *http.Request) bool { return r.UserAgent() == "plimsoll" && fetched.Swap(true) })
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
